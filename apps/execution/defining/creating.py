"""Creation of a benchmark from options or as a clone, with validation of its matrix and all its runs."""

from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from apps.datasets.versions import choose_weighting
from apps.execution.defining.choosing import check_engines, choose_indexes, find_ann_problem
from apps.mappings.checking import require_found
from apps.mappings.filters import require_modules
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale
from apps.operations.handlers import render_traceback
from apps.records.measuring.measures import list_measures
from apps.records.models import Benchmark, Origin, Run
from apps.retrieval.availability import UnavailableError, describe_missing, list_run_requirements
from apps.retrieval.encoders.admitting import PUBLISHED
from apps.retrieval.models import Index
from benchbench.deleting import referring
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.planning.axes import run_label
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.matrix import Matrix, MatrixError
from benchbench.models import ARCHIVED, MAX_TAGS, spell_tag
from benchbench.names import MAX_LENGTH, check_name

MAX_REPETITIONS = 100
MAX_SEED = 2**63 - 1  # the largest bigint of PostgreSQL
CHOICES = {
    "execution": tuple(Benchmark.Execution.values),
    "unresolved": ("count", "drop"),
    "empty_queries": ("zero", "skip"),
    "weighting": ("equal", "demand"),
    "identical_texts": ("different", "judged"),
}


class BenchmarkError(BenchbenchError):
    """The benchmark cannot be created with these options."""

    code = "invalid_benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """Options of a new benchmark: its matrix (formats.md lists the keys), its execution and its measures.

    `measures` are added to those of the matrix's cutoffs. `weighting` "" means "demand" if the version's queries have
    weights that differ, else "equal". The fields are named as in the table.
    """

    name: str
    matrix: MappingType[str, Any]
    description: str = ""
    tags: Sequence[str] = ()
    execution: str = "shared"
    runs_per_query: int = 1
    seed: int = 42
    unresolved: str = "count"
    empty_queries: str = "zero"
    weighting: str = ""
    exclude_self: bool = False
    identical_texts: str = "different"
    measures: Sequence[str] = ()
    allow_missing: bool = False

    @classmethod
    def from_benchmark(cls, benchmark: Benchmark) -> Self:
        """Return the options of a benchmark for another, which is not archived with it."""
        tags = [tag for tag in benchmark.tags if tag != ARCHIVED]
        return cls(**{field.name: getattr(benchmark, field.name) for field in fields(cls)} | {"tags": tags})

    @classmethod
    def from_values(cls, values: MappingType[str, Any], **overrides: Any) -> Self:
        """Return the options in `values`, overridden by `overrides`; missing values and None mean the default."""
        options = {field.name: values.get(field.name) for field in fields(cls)} | overrides
        return cls(**{name: value for name, value in options.items() if value is not None})

    def check(self) -> None:
        """Raise BenchmarkError for the first invalid value, apart from the matrix and the measures."""
        check_name(self.name, "benchmark", error=BenchmarkError)
        if not 1 <= self.runs_per_query <= MAX_REPETITIONS:
            message = f"runs_per_query is {self.runs_per_query}; it must be 1 to {MAX_REPETITIONS}."
            raise BenchmarkError(message, field="runs_per_query")
        if not 0 <= self.seed <= MAX_SEED:
            raise BenchmarkError(f"seed is {self.seed}; it must be 0 to {MAX_SEED}.", field="seed")
        try:
            list(map(spell_tag, self.tags))
        except ValidationError as error:
            raise BenchmarkError(str(error.message), field="tags") from None
        if len(self.tags) > MAX_TAGS:
            raise BenchmarkError(f"{len(self.tags)} tags; give at most {MAX_TAGS}.", field="tags")
        check_policies(**{name: getattr(self, name) for name in CHOICES if name != "weighting" or self.weighting})


def check_policies(**choices: str) -> None:
    """Raise BenchmarkError for an unknown policy or execution."""
    for field, value in choices.items():
        if value not in CHOICES[field]:
            raise BenchmarkError(f"{field} is {value!r}; it must be one of: {', '.join(CHOICES[field])}.", field=field)


def require_isolated(matrix: Matrix, execution: str) -> None:
    """Raise MatrixError for rates in shared execution."""
    if any(matrix.axes["rates"]) and execution != Benchmark.Execution.ISOLATED:
        raise MatrixError("rates: only isolated execution has rates: choose it, or leave them out.", field="rates")


def require_published(matrix: object) -> None:
    """Raise MatrixError for a reranker without a published name: clients may not name folders of the server.

    Other faults of the matrix are left to the use case.
    """
    rerankers = matrix.get("rerankers") if isinstance(matrix, MappingType) else None
    for name in rerankers if isinstance(rerankers, list) else ():
        if isinstance(name, str) and name.strip() and not PUBLISHED.fullmatch(name):
            raise MatrixError(
                f'rerankers: {name[:80]!r} is not a model name such as "cross-encoder/ms-marco-MiniLM-L6-v2". Only '
                "commands accept a folder of the server.",
                field="rerankers",
            )


def create_benchmark(
    mapping: Mapping,
    options: BenchmarkOptions,
    *,
    owner: User | None = None,
    version: DatasetVersion | None = None,
    indexes: MappingType[str | None, Index] | None = None,
    manifest: dict[str, Any] | None = None,
    experiment: dict[str, Any] | None = None,
) -> Benchmark:
    """Create a pending benchmark with one run per configuration of the matrix.

    It runs the queries of the newest frozen version, or of `version`. `indexes` gives the index for each name of the
    matrix, by default the newest ready index that the owner sees (`load_newest_indexes`). An index that failed to
    build, or an experiment's store that is not installed, gives failed runs with the reason, so that summaries include
    them. `manifest` and `experiment` are stored with the benchmark.

    Nothing is created on an error. Raises MatrixError for the matrix and its indexes, with the key at fault as `field`.
    Raises MeasuresError for a measure and BenchmarkError for other options. Raises ConflictError if the mapping is not
    resolved or is stale; unless `allow_missing`, also if it found no document or the collection lacks expected modules.
    """
    options.check()
    newest = require_current(mapping)
    if not options.allow_missing:
        require_modules(mapping)
        require_found(mapping)
    stores = options.matrix.get("ann", ()) if experiment else ()
    max_values = max(settings.BENCHMARK_MAX_VALUES_PER_AXIS, len(indexes or ()), len(stores))
    parsed = Matrix.parse(options.matrix, max_runs=settings.BENCHMARK_MAX_RUNS, max_values=max_values)
    configurations = parsed.list_configurations()
    require_documents(mapping, configurations)
    check_engines(configurations, version or newest)
    require_isolated(parsed, options.execution)
    by_name = choose_indexes(mapping, configurations, owner, indexes=indexes, index_only="config" in (experiment or {}))
    measure_names = list_measures(parsed.k_values_for_metrics, options.measures, version or newest)
    overrides: dict[str, object] = {"name": options.name.strip(), "matrix": parsed.as_dict(), "measures": measure_names}
    overrides["weighting"] = options.weighting or choose_weighting(version or newest)
    overrides["tags"] = list(dict.fromkeys(map(spell_tag, options.tags)))
    with referring("The benchmark"):
        benchmark = Benchmark.objects.create(
            **asdict(options) | overrides,
            owner=owner,
            mapping=mapping,
            dataset_version=version or newest,
            primary_k=parsed.primary_k,
            k_values=list(parsed.k_values_for_metrics),
            total_runs=len(configurations),
        )
        if manifest or experiment:
            Origin.objects.create(benchmark=benchmark, manifest=manifest or {}, experiment=experiment or {})
        Run.objects.bulk_create(
            run_of(benchmark, order, configuration, by_name[configuration.index] if configuration.needs_index else None)
            for order, configuration in enumerate(configurations, start=1)
        )
    return benchmark


def require_documents(mapping: Mapping, configurations: Sequence[Configuration]) -> None:
    """Raise BenchmarkError if a configuration searches documents and the collection has only their ids."""
    searching = any(configuration.needs_index for configuration in configurations)
    if mapping.collection.kind == Collection.Kind.EXTERNAL and searching:
        raise BenchmarkError(
            f"The mapping {mapping.name!r} has only ids of documents, which search engines alone can rank: choose "
            "another mapping, the search mode engine, or import runs.",
            field="mapping",
        )


def run_of(benchmark: Benchmark, order: int, configuration: Configuration, index: Index | None) -> Run:
    """Return the unsaved run of one configuration.

    It is failed already if its index could not be built, a part it needs is not installed, or its `ann` cannot search
    the index.
    """
    error = traceback = ""
    try:
        if index is not None:
            _require_searchable(index, configuration)
    except UnavailableError as refusal:
        error, traceback = refusal.message, render_traceback(refusal)
    return Run(
        benchmark=benchmark,
        run_order=order,
        label=run_label(configuration),
        config=configuration.as_dict(),
        config_hash=configuration.hash,
        index=index,
        status=Run.Status.FAILED if error else Run.Status.PENDING,
        error_message=error,
        traceback=traceback,
    )


def _require_searchable(index: Index, configuration: Configuration) -> None:
    """Raise UnavailableError if a configuration cannot search an index in this installation."""
    if index.status == Index.Status.FAILED:
        raise UnavailableError(f"Its index could not be built. {index.error}")
    if missing := describe_missing(list_run_requirements(index, configuration)):
        raise UnavailableError(f"{missing[0].upper()}{missing[1:]}.")
    if reason := find_ann_problem(index, configuration):
        raise UnavailableError(f"{reason[0].upper()}{reason[1:]}")


def require_current(mapping: Mapping) -> DatasetVersion:
    """Return the version that the mapping is resolved for. Raises ConflictError if the mapping is pending or stale."""
    if mapping.dataset_version is None:
        raise ConflictError(f"The mapping {mapping.name!r} has not been resolved: resolve it first.")
    if is_stale(mapping):
        raise ConflictError(
            f"The dataset or the collection of the mapping {mapping.name!r} has changed since it was resolved: "
            "resolve it again."
        )
    return mapping.dataset_version


def require_searched(benchmark: Benchmark, act: str) -> None:
    """Raise ConflictError for a benchmark of external runs, whose rankings were made elsewhere."""
    if benchmark.is_external:
        raise ConflictError(
            f"The benchmark {benchmark.name!r} holds external runs: you cannot {act} it. Import a run into it instead."
        )


class CloneError(ConflictError):
    """The benchmark cannot be cloned."""

    code = "cannot_clone"


@transaction.atomic
def clone(
    benchmark: Benchmark,
    *,
    name: str = "",
    owner: User | None = None,
    allow_missing: bool | None = None,
    indexes: MappingType[str | None, Index] | None = None,
) -> Benchmark:
    """Create a pending benchmark with the mapping, matrix, measures and options of another.

    It uses the version that the mapping is resolved for now, and the newest indexes of the matrix's names that `owner`
    sees. A manifest, in contrast, runs on the same version and indexes. The clone keeps the experiment if version and
    indexes are unchanged. `name` defaults to "…, copy", `allow_missing` to that of the original, and `indexes`, by
    their names in the matrix, to the newest. Raises CloneError if an index is deleted or hidden from `owner`, and the
    errors of `create_benchmark` for the mapping.
    """
    require_searched(benchmark, "clone")
    name = name or benchmark.name[: MAX_LENGTH - len(", copy")] + ", copy"
    allow_missing = benchmark.allow_missing if allow_missing is None else allow_missing
    options = replace(BenchmarkOptions.from_benchmark(benchmark), name=name, allow_missing=allow_missing)
    try:
        copy = create_benchmark(benchmark.mapping, options, owner=owner, indexes=indexes)
    except MatrixError as error:
        raise CloneError(f"The benchmark {benchmark.name!r} cannot be cloned. {error.message}") from None
    if benchmark.experiment and _load_basis(copy) == _load_basis(benchmark):
        Origin.objects.create(benchmark=copy, experiment=benchmark.experiment)
    return copy


def _load_basis(benchmark: Benchmark) -> list[UUID]:
    """Return the ids of the dataset version and of the runs' indexes."""
    return [benchmark.dataset_version_id, *benchmark.runs.order_by("run_order").values_list("index", flat=True)]
