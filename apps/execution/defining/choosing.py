"""Choice of the index of a configuration, the checks of its index and its engine, and the default modes."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingType
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from apps.datasets.models import DatasetVersion
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineError
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from apps.retrieval.availability import require_available
from apps.retrieval.models import Index
from apps.retrieval.search.ann_indexes import AnnIndexError
from apps.retrieval.search.arms import check_arm
from apps.retrieval.search.words import describe_outdated_words
from apps.retrieval.strategies import get_strategy
from benchbench.access import usable
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.configuration import INDEX_MODES, LATE_INTERACTION, LEXICAL, Configuration
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.lexical import BM25, Lexical, LexicalError
from benchbench.ir.planning.matrix import MatrixError, default_modes


def choose_indexes(
    mapping: Mapping,
    configurations: list[Configuration],
    owner: User | None,
    *,
    indexes: MappingType[str | None, Index] | None = None,
    index_only: bool = False,
) -> dict[str | None, Index]:
    """Return the index of each configuration by its name: the newest ready version that `owner` may search.

    The name None means the newest index of any name. `indexes` replaces this choice. Raises MatrixError for an unknown
    name and for a mode that the index cannot search. Raises UnavailableError if a part that a configuration needs is
    not installed. With `index_only` only those of the index are checked; `find_ann_problem` explains others per run.
    """
    by_name = load_newest_indexes(mapping, owner) if indexes is None else dict(indexes)
    for configuration in configurations:
        if not configuration.needs_index:
            continue
        if configuration.index not in by_name:
            raise _build_index_error(mapping, configuration.index, owner)
        index = by_name[configuration.index]
        if index.status != Index.Status.FAILED:  # the run reports why
            require_available(index, None if index_only else configuration)
        for key, sentence in _list_refusals(index, configuration, index_only=index_only):
            raise MatrixError(f"{key}: {sentence}", field=key)
    return by_name


def list_ready_indexes(mapping: Mapping, owner: User | None) -> QuerySet[Index]:
    """Return the ready indexes that a benchmark of `owner` over `mapping` may search, newest first.

    Without an owner, as in a command, use the owner of the mapping.
    """
    ready = mapping.collection.indexes.filter(status=Index.Status.READY)
    ready = ready.select_related("chunk_set", "collection", "lexical_index__chunk_set")
    return usable(ready, owner or mapping.owner).order_by("-ready_at", "-version")


def load_newest_indexes(mapping: Mapping, owner: User | None) -> dict[str | None, Index]:
    """Return the newest index of each name for a matrix of `owner`, and under None the newest of all.

    Only ready indexes of the collection's current documents count. The newest is the index that became ready last.
    """
    by_name: dict[str | None, Index] = {}
    for index in filter(is_current, list_ready_indexes(mapping, owner)):
        by_name.setdefault(index.name, index)
        by_name.setdefault(None, index)
    return by_name


def compare_indexes(benchmark: Benchmark, user: User) -> Iterator[str]:
    """Yield a sentence for each index of the matrix: the version that a clone for `user` would search, and before."""
    newest = load_newest_indexes(benchmark.mapping, user)
    runs = benchmark.runs.exclude(index=None).select_related("index").order_by("run_order").defer("provenance")
    searched = {run.configuration.index: run.index for run in runs}
    for name, index in searched.items():
        if name not in newest:
            yield f"The index {index} is not ready for the current documents: build it again, or choose another index."
        elif newest[name] == index:
            yield f"It searches {index} again, the newest ready version."
        else:
            yield f"It searches {newest[name]}; {benchmark} searched {index}."


def is_current(index: Index) -> bool:
    """Check whether an index holds the current documents of its collection."""
    return index.chunk_set is not None and index.chunk_set.collection_fingerprint == index.collection.fingerprint


def _build_index_error(mapping: Mapping, name: str | None, owner: User | None) -> MatrixError:
    available = sorted(set(list_ready_indexes(mapping, owner).values_list("name", flat=True)))
    collection = repr(mapping.collection.name)
    if owner is None and not available and mapping.collection.indexes.filter(status=Index.Status.READY).exists():
        seen_by = mapping.owner or "the whole staff"
        sentence = (
            f"indexes: {collection} has no ready index that {seen_by} can see. A command without --owner uses only "
            "these: give --owner."
        )
    elif not available:
        sentence = f"The collection {collection} has no ready index: build one first."
    elif name in available or name is None:
        label = f"The index {name!r}" if name else "Every index"
        sentence = (
            f"indexes: {label} of {collection} was built before its documents changed: build a new version of it first."
        )
    else:
        sentence = f"indexes: {collection} has no ready index named {name!r}; choose one of {', '.join(available)}."
    return MatrixError(sentence, field="indexes")


def _list_refusals(index: Index, configuration: Configuration, *, index_only: bool) -> Iterator[tuple[str, str]]:
    """Yield the reasons why a configuration cannot search an index: (key of the matrix at fault, sentence)."""
    mode, name = configuration.search_mode, repr(index.name)
    requirement = f"{mode} search cannot use the index {name}: it has no"
    if configuration.uses_vectors and not index.has_vectors:
        yield (
            "search_modes",
            f"{requirement} vectors. Choose the mode sparse, or an index with an encoder.",
        )
    elif configuration.uses_bm25 and index.lexical_index_id is None:
        yield "search_modes", f"{requirement} lexical index. Choose the mode dense, or an index with BM25."
    elif reason := find_words_problem(index, configuration):
        yield "search_modes", reason
    if not index_only and (reason := find_ann_problem(index, configuration)):
        yield "ann", reason
    dimensions, max_dimensions = configuration.dimensions, index.dimension or 0
    if dimensions is not None and dimensions > max_dimensions:
        yield (
            "dimensions",
            f"{dimensions} exceeds the {max_dimensions} dimensions of {name}: give at most {max_dimensions}.",
        )
    elif dimensions is not None and configuration.ann != "exact":
        yield (
            "dimensions",
            f"{configuration.ann} does not use this axis, which is for exact search. Leave out one of the two, or give "
            f"ann its own, such as compressed(dimensions={dimensions}).",
        )
    if configuration.interacts_late and not index.encoder:
        yield (
            "rerankers",
            f'"{LATE_INTERACTION}" needs the encoder of the index, but {name} was built without one. Choose another '
            "reranker, or an index with an encoder.",
        )
    if configuration.rate and get_strategy(index.strategy).asks:
        yield "rates", f"answers of the language model of {name} are stored: search it one query at a time."
    if configuration.rewrites and mode != "sparse" and not index.encoder:
        yield (
            "query",
            f"{configuration.query} needs vectors of new texts, but {name} was built without an encoder. Choose "
            "another index, or search queries as asked.",
        )


def find_words_problem(index: Index, configuration: Configuration) -> str:
    """Return why a configuration cannot search the words of an index, as a sentence, or "" if it can."""
    return describe_outdated_words(index, Lexical.parse(configuration.lexical)) if configuration.uses_words else ""


def find_ann_problem(index: Index, configuration: Configuration) -> str:
    """Return why the `ann` of a configuration cannot search an index, as a sentence, or "" if it can."""
    try:
        check_arm(index, Ann.parse(configuration.ann))
    except AnnIndexError as error:
        return error.message
    return ""


def add_modes(mapping: Mapping, matrix: MappingType[str, object], *, owner: User | None = None) -> dict[str, object]:
    """Return `matrix` with search_modes; by default all modes that every index it names, for `owner`, can search.

    Other faults of the matrix are left to `create_benchmark` and `preview`. Raises MatrixError if the indexes have no
    mode in common.
    """
    names = matrix.get("indexes", (None,))
    by_name = load_newest_indexes(mapping, owner)
    if "search_modes" in matrix or not isinstance(names, list | tuple):
        return dict(matrix)
    if matrix.get("engines") and "indexes" not in matrix:
        return {**matrix, **default_modes(matrix)}
    indexes = [by_name[name] for name in names if (name is None or isinstance(name, str)) and name in by_name]
    if not indexes:
        return dict(matrix)
    engines = matrix.get("lexical", LEXICAL[:1])
    modes = [mode for mode in INDEX_MODES if all(can_search(index, mode, engines) for index in indexes)]
    if not modes:
        index_names = " and ".join(sorted({index.name for index in indexes}))
        raise MatrixError(
            f"search_modes: the indexes {index_names} have no mode in common: use a separate benchmark for each.",
            field="search_modes",
        )
    return {**matrix, "search_modes": modes, **default_modes(matrix, modes)}


def can_search(index: Index, mode: str, engines: object = LEXICAL[:1]) -> bool:
    """Check whether an index has what a mode of search with these lexical engines reads: all can have full text."""
    lexical = index.lexical_index_id is not None or not _needs_bm25(engines)
    return {"dense": index.has_vectors, "sparse": lexical, "hybrid": index.has_vectors and lexical}[mode]


def _needs_bm25(engines: Any) -> bool:
    try:
        return any(setting.engine == BM25 for each in engines for setting in Lexical.expand(each))
    except (LexicalError, TypeError):
        return True  # the matrix is refused for it


def require_engines(benchmark: Benchmark) -> None:
    """Raise EngineError for an engine or a parameter of a benchmark that the site no longer declares."""
    for text in filter(None, benchmark.matrix.get("engines", ())):
        setting = EngineSetting.parse(text)
        load_engine(setting.alias).complete(dict(setting.parameters))


def check_engines(configurations: Iterable[Configuration], version: DatasetVersion) -> None:
    """Raise MatrixError for an engine that is not declared, a wrong parameter, or queries that it cannot answer."""
    for text in dict.fromkeys(run.engine for run in configurations if run.engine):
        setting = EngineSetting.parse(text)
        try:
            engine = load_engine(setting.alias)
            engine.complete(dict(setting.parameters))
        except EngineError as error:
            raise MatrixError(f"engines: {error.message}", field="engines") from None
        if "filters" not in engine.names and version.queries.exclude(filters={}).exists():
            raise MatrixError(
                f"engines: queries of {version} have filters, but the declaration of {setting.alias} does not use "
                "{filters}: add it to the template of the engine.",
                field="engines",
            )
