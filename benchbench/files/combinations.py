"""Combinations of an experiment, and the documents of its directory that it keeps."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchbench.files.errors import FileFormatError
from benchbench.files.experiment import LLM, Backend, Embedding, Experiment, Strategy
from benchbench.ir.planning.labels import short_model
from benchbench.ir.planning.strategies import STRATEGIES


@dataclass(frozen=True, slots=True)
class Combination:
    """A strategy over a backend by an embedding, and by a language model where the strategy asks one."""

    strategy: Strategy
    backend: Backend
    embedding: Embedding
    llm: LLM | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What shapes the strategy, by the names of the file; the others are read and do nothing."""
        declared = STRATEGIES[self.strategy.name].parameters
        stated = asdict(self.strategy).items()
        return {name: value for name, value in stated if name.removeprefix("chunk_") in declared}

    @property
    def name(self) -> str:
        """What it is in a few words: "flat 500/50 · memory · all-MiniLM-L6-v2"."""
        chunks = f"{self.strategy.name} {self.strategy.chunk_size}/{self.strategy.chunk_overlap}"
        models = [short_model(model.model) for model in (self.embedding, self.llm) if model]
        return " · ".join([chunks, self.backend.name, *models])

    @property
    def made_of(self) -> tuple[Any, ...]:
        """What tells its index from others."""
        return self.strategy.name, tuple(self.parameters.values()), self.embedding, self.llm


def combinations(experiment: Experiment, *, where: str) -> dict[str, Combination]:
    """Return each distinct combination under a name that tells it from the others, strategies varying slowest.

    Of combinations that differ only in what does not touch them the first stays. Raises FileFormatError, in
    which `where` names the file, for a strategy that asks a language model where none is stated.
    """
    distinct: dict[tuple[Any, ...], Combination] = {}
    for index, strategy in enumerate(experiment.strategies):
        asks = STRATEGIES[strategy.name].requires_llm
        if asks and not experiment.llms:
            what = f"strategies[{index}] is {strategy.name}, which asks a language model: state one in llms"
            raise FileFormatError(f"{where}, {what}.", field="llms")
        for backend in experiment.backends:
            for embedding in experiment.embeddings:
                for llm in experiment.llms if asks else (None,):
                    combination = Combination(strategy, backend, embedding, llm)
                    distinct.setdefault((*combination.made_of, backend.name), combination)
    return _named(list(distinct.values()))


def kept_documents(ids: Sequence[str], expected: Collection[str], most: int | None) -> list[str]:
    """Return which of `ids` an experiment keeps, in their order: all that are expected, then the first ones.

    At most `most`, unless more are expected; all of them without `most`.
    """
    if most is None:
        return list(ids)
    expected = set(expected)
    needed = [id for id in ids if id in expected]
    others = [id for id in ids if id not in expected]
    chosen = {*needed, *others[: max(0, most - len(needed))]}
    return [id for id in ids if id in chosen]


def _named(distinct: list[Combination]) -> dict[str, Combination]:
    named: dict[str, Combination] = {}
    for combination in distinct:
        named[_free(combination.name, named)] = combination
    return named


def _free(wanted: str, taken: Collection[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted} ({number})"
    return name
