"""The indexes of a batch, opened when a stage first needs them."""

from collections.abc import Iterator, Mapping

from apps.retrieval.models import Index
from apps.retrieval.search.open_indexes import OpenIndex, open_index
from benchbench.ir.planning.stages import DenseStage, LexicalStage


class OpenIndexes(Mapping[str | None, OpenIndex]):
    """Open indexes by the name that configurations have for them.

    One that cannot be opened raises where it is asked for, in the stages that need it, and harms no other's runs.
    """

    def __init__(self, indexes: Mapping[str | None, Index]) -> None:
        self._indexes = indexes

    def __getitem__(self, name: str | None) -> OpenIndex:
        return open_index(self._indexes[name])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)


def opened_for(stage: DenseStage | LexicalStage, indexes: Mapping[str | None, OpenIndex]) -> OpenIndex:
    """Return the index that a stage searches, with all that is read of it once: that is no part of a query's cost."""
    index = indexes[stage.index]
    if isinstance(stage, DenseStage):
        index.prepare(stage.dimensions)
    return index
