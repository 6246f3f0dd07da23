"""Settings of dense search on an index: check them, and build what they search before any query."""

from typing import Any

from apps.retrieval.models import Index
from apps.retrieval.search import pgvector
from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.pgvector import AnnIndexError
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import is_filled, name_collection
from benchbench.ir.planning.ann import Ann


def check_arm(index: Index, setting: Ann) -> None:
    """Check that the store of a setting can hold the vectors of a ready index. Raises AnnIndexError."""
    if setting.store not in STORES:
        pgvector.check_ann(index, setting)
        return
    if index.dimension is None or index.chunk_set is None:
        return
    if obstacle := STORES[setting.store].describe_obstacle(setting, index.chunk_set.vector_count, index.dimension):
        raise AnnIndexError(
            f'{setting} cannot search "{index}": {obstacle}. Choose other values, or leave it out.', field="ann"
        )


def find_missing_arm(index: Index, setting: Ann) -> tuple[str, str] | None:
    """Return the missing structure that a setting searches, as its name and a description, or None."""
    assert index.chunk_set is not None
    build = {option: value for option, value in setting.build.items() if (option, value) != ("dimensions", 0)}
    options = ", ".join(f"{option}={value}" for option, value in build.items())
    label = f"{setting.name} ({options})" if options else setting.name
    description = f"{label} over {index.chunk_set.vector_count:,} vectors of {index}"
    if setting.store in STORES:
        name = name_collection(setting)
        return None if is_filled(locate_collections(index) / name) else (f"{index.pk} {name}", description)
    if setting.compares_all:
        return None
    name = pgvector.name_ann_index(index, setting)
    return None if pgvector.find_ann_index(name) else (name, description)


def make_arm(index: Index, setting: Ann, depth: int, share: float | None = None) -> dict[str, Any]:
    """Build the structure that a setting searches, if missing, and return facts about it.

    The facts are `index` (its name), `bytes`, `build_seconds`, and the `settings` read back. Those of pgvector also
    have what `pgvector.explain` returns for a share of the documents, those of other stores `store` and
    `version`. Raises AnnIndexError, StoreError, SearchError.
    """
    check_arm(index, setting)
    assert index.chunk_set is not None
    if setting.store in STORES:
        if not index.chunk_set.vector_count:
            return {}
        opened = open_index(index).collections.ensure_filled(setting)
        facts = {"index": name_collection(setting), "bytes": opened.bytes, "build_seconds": opened.build_seconds}
        return facts | {
            "store": setting.store,
            "version": opened.version,
            "settings": dict(opened.collection.read_back(setting)),
        }
    if setting.compares_all:
        return pgvector.explain(index, setting, depth, share)
    ann_index = pgvector.make_ann_index(index, setting)
    built = {"index": ann_index.name, "bytes": ann_index.bytes, "build_seconds": ann_index.build_seconds}
    return built | pgvector.explain(index, setting, setting.count_nominees(depth), share)
