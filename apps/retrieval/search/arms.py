"""Settings of dense search on an index: check them, and build what they search before any query."""

from apps.retrieval.models import Index
from apps.retrieval.search import ann_indexes, pgvector
from apps.retrieval.search.ann_indexes import AnnIndexError
from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import is_filled, name_collection
from benchbench.ir.planning.ann import Ann
from benchbench.reading.strict_json import attributes


def check_arm(index: Index, setting: Ann) -> None:
    """Check that the store of a setting can hold the vectors of a ready index. Raises AnnIndexError."""
    if setting.store not in STORES:
        ann_indexes.check_ann(index, setting)
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
    name = ann_indexes.name_ann_index(index, setting)
    return None if ann_indexes.find_ann_index(name) else (name, description)


def make_arm(index: Index, setting: Ann, depth: int, share: float | None = None) -> dict[str, object]:
    """Build the structure that a setting searches, if missing, and return facts about it.

    The facts are `index` (its name), `bytes`, `build_seconds`, `build`, and the `settings` read back. Those of pgvector
    also have what `pgvector.explain` returns for a share of the documents, those of other stores `store` and
    `version`. Raises AnnIndexError, StoreError, SearchError.
    """
    check_arm(index, setting)
    assert index.chunk_set is not None
    if setting.store in STORES:
        if not index.chunk_set.vector_count:
            return {}
        opened = open_index(index).collections.ensure_filled(setting)
        facts = {"index": name_collection(setting), **attributes(opened, "bytes", "build_seconds", "build")}
        return facts | {
            "store": setting.store,
            "version": opened.version,
            "settings": dict(opened.collection.read_back(setting)),
        }
    if setting.compares_all:
        return pgvector.explain(index, setting, depth, share)
    ann_index = ann_indexes.make_ann_index(index, setting)
    built = {"index": ann_index.name, **attributes(ann_index, "bytes", "build_seconds", "build")}
    return built | pgvector.explain(index, setting, setting.count_nominees(depth), share)


def find_build(index: Index, setting: Ann) -> str:
    """Return which build of a structure a setting searches here; "" if it is missing, or compares all vectors.

    The build does not matter then. Raises StoreError and the errors of `open_index`.
    """
    if setting.compares_all or index.chunk_set is None or not index.chunk_set.vector_count:
        return ""
    if setting.store in STORES:
        return open_index(index).collections.ensure_filled(setting).build
    ann_index = ann_indexes.find_ann_index(ann_indexes.name_ann_index(index, setting))
    return ann_index.build if ann_index else ""
