"""Public test collections by their id in the catalogue of the library ir_datasets: `beir/scifact/test`, `cranfield`.

The library is optional (`pip install 'benchbench[ir-datasets]'`). It downloads missing files from the addresses in its
own catalogue, so a user's id cannot name an address. Only commands take an id, never a web request.
"""

from collections.abc import Callable, Iterator
from typing import Any

from benchbench.errors import BenchbenchError

PREFIX = "ir_datasets:"
MAX_LISTED = 5


class CatalogueError(BenchbenchError):
    """A collection of the catalogue is unavailable. The message gives the reason and the remedy."""

    code = "catalogue"


def parse_catalogue_id(source: object) -> str:
    """Return the id in a source (`ir_datasets:cranfield`), "" if it is a path."""
    text = str(source)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""


def load(id: str) -> Any:
    """Return a dataset of the library by its id, without downloading it; see `read`."""
    try:
        import ir_datasets
    except ImportError:
        raise CatalogueError(
            f"{PREFIX}{id} needs the library ir_datasets: install it with pip install 'benchbench[ir-datasets]', or "
            "give a file or a directory."
        ) from None
    try:
        return ir_datasets.load(id)
    except KeyError:
        raise CatalogueError(
            f"The dataset {id[:80]!a} was not found in ir_datasets{_list_subsets(ir_datasets, id)}."
        ) from None


def read(id: str, rows: Callable[[], Iterator[object]]) -> Iterator[Any]:
    """Yield rows of a dataset, which is downloaded if it is missing. Raises CatalogueError if that fails.

    The library has no error class of its own: it passes on the errors of its parsers and its HTTP client.
    """
    try:
        yield from rows()
    except BenchbenchError:
        raise
    except Exception as error:
        raise CatalogueError(
            f"ir_datasets cannot load {id}: {str(error).rstrip('.')[:300] or type(error).__name__}. "
            "Downloads need the network; put some collections in its folder by hand, see its "
            "documentation."
        ) from error


def require(dataset: Any, id: str, *entities: str) -> None:
    """Raise CatalogueError if a dataset lacks one of the given parts: `docs`, `queries`, `qrels`."""
    names = {"docs": "documents", "queries": "queries", "qrels": "judgments"}
    lacking = [names[entity] for entity in entities if not dataset.has(entity)]
    if lacking:
        import ir_datasets

        raise CatalogueError(f"{id} of ir_datasets has no {' and no '.join(lacking)}{_list_subsets(ir_datasets, id)}.")


def _list_subsets(library: Any, id: str) -> str:
    subsets = sorted(name for name in library.registry if name.startswith(f"{id.rstrip('/')}/"))
    more = ", …" if len(subsets) > MAX_LISTED else ""
    return f"; choose one of {', '.join(subsets[:MAX_LISTED])}{more}" if subsets else ""
