"""Creating a benchmark, from options or as a clone: its matrix is validated, and all its runs are created."""

from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from apps.benchmarks.defining.choosing import choose_indexes, unable
from apps.benchmarks.measuring.measures import measures_of
from apps.benchmarks.models import Benchmark, Origin, Run
from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from apps.mappings.filters import require_modules
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale
from apps.operations.handlers import traceback_of
from apps.retrieval.availability import UnavailableError, lack, parts_of_run
from apps.retrieval.encoders.admitting import PUBLISHED
from apps.retrieval.models import Index
from benchbench.deleting import referring
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.labels import run_label
from benchbench.ir.planning.matrix import Matrix, MatrixError
from benchbench.names import MAX_LENGTH

MAX_REPETITIONS = 100
MAX_SEED = 2**63 - 1  # as PostgreSQL stores it
CHOICES = {
    "execution": tuple(Benchmark.Execution.values),
    "unresolved": ("count", "drop"),
    "empty_queries": ("zero", "skip"),
}


class BenchmarkError(BenchbenchError):
    """A benchmark that cannot be made as asked."""

    code = "invalid_benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """A benchmark as it is asked for: its matrix (formats.md names the keys) and how it is run and measured.

    `measures` are had besides those of the matrix's cutoffs. The fields are those of the table.
    """

    name: str
    matrix: MappingType[str, Any]
    description: str = ""
    execution: str = "shared"
    runs_per_query: int = 1
    seed: int = 42
    unresolved: str = "count"
    empty_queries: str = "zero"
    measures: Sequence[str] = ()
    allow_missing: bool = False

    @classmethod
    def of(cls, benchmark: Benchmark) -> Self:
        return cls(**{field.name: getattr(benchmark, field.name) for field in fields(cls)})

    @classmethod
    def among(cls, values: MappingType[str, Any], **others: Any) -> Self:
        """Return the options that are among `values`, besides `others`; what is None or not there has its default."""
        known = {field.name: values.get(field.name) for field in fields(cls)} | others
        return cls(**{name: value for name, value in known.items() if value is not None})

    def check(self) -> None:
        """Raise BenchmarkError for the first value that cannot be, other than of the matrix and the measures."""
        if not self.name.strip() or not self.name.strip().isprintable():
            raise BenchmarkError("The benchmark needs a name of printable characters.", field="name")
        if not 1 <= self.runs_per_query <= MAX_REPETITIONS:
            told = f"runs_per_query is {self.runs_per_query}; it must be 1 to {MAX_REPETITIONS}."
            raise BenchmarkError(told, field="runs_per_query")
        if not 0 <= self.seed <= MAX_SEED:
            raise BenchmarkError(f"seed is {self.seed}; it must be 0 to {MAX_SEED}.", field="seed")
        check_policies(execution=self.execution, unresolved=self.unresolved, empty_queries=self.empty_queries)


def check_policies(**chosen: str) -> None:
    """Raise BenchmarkError for a policy or a way to execute that there is not."""
    for field, value in chosen.items():
        if value not in CHOICES[field]:
            raise BenchmarkError(f"{field} is {value!r}; it must be one of: {', '.join(CHOICES[field])}.", field=field)


def require_published(matrix: Any) -> None:
    """Raise MatrixError for a reranker that is no published name: no client names a folder of the server.

    What else may be wrong with a matrix is left to the use case.
    """
    rerankers = matrix.get("rerankers") if isinstance(matrix, MappingType) else None
    for name in rerankers if isinstance(rerankers, list) else ():
        if isinstance(name, str) and name.strip() and not PUBLISHED.fullmatch(name):
            raise MatrixError(
                f'rerankers: {name[:80]!r} is not the name of a model, as in "cross-encoder/ms-marco-MiniLM-L6-v2": '
                "folders of the server are named by commands only.",
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

    It asks the queries of the newest frozen version, or of `version`. By `indexes` a caller says which index each name
    of the matrix means; without, it is the newest that is ready, of those that the owner sees (`newest_indexes`). One
    that could not be built makes runs that failed, with its error, so that no summary lacks them; so does a store of an
    experiment that is not here. `manifest` and `experiment` are kept with what is run from one. Nothing is created when
    anything is wrong. Raises MatrixError, whose `field` is the key at fault, for the matrix and the indexes it names;
    MeasuresError for a measure;
    BenchmarkError for the rest; ConflictError for a mapping that was not resolved, or not since its collection or
    dataset changed, and, unless `allow_missing`, for one that found no document at all and for expected modules that
    the collection lacks.
    """
    options.check()
    _require_documents(mapping)
    newest = require_current(mapping)
    if not options.allow_missing:
        require_modules(mapping)
        require_found(mapping)
    stores = options.matrix.get("ann", ()) if experiment else ()
    most_values = max(settings.BENCHMARK_MAX_VALUES_PER_AXIS, len(indexes or ()), len(stores))
    parsed = Matrix.parse(options.matrix, max_runs=settings.BENCHMARK_MAX_RUNS, max_values=most_values)
    configurations = parsed.configurations()
    chosen = choose_indexes(mapping, configurations, owner, among=indexes, may_lack="config" in (experiment or {}))
    measured = measures_of(parsed.k_values_for_metrics, options.measures, version or newest)
    stored = {"name": options.name.strip(), "matrix": parsed.as_dict(), "measures": measured}
    with referring("The benchmark"):
        benchmark = Benchmark.objects.create(
            **asdict(options) | stored,
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
            run_of(benchmark, order, configuration, chosen[configuration.index])
            for order, configuration in enumerate(configurations, start=1)
        )
    return benchmark


def _require_documents(mapping: Mapping) -> None:
    if mapping.collection.kind == Collection.Kind.EXTERNAL:
        raise BenchmarkError(
            f"The mapping {mapping.name!r} is for external runs, whose documents are not here to be searched: "
            "choose another mapping, or import runs.",
            field="mapping",
        )


def run_of(benchmark: Benchmark, order: int, configuration: Configuration, index: Index) -> Run:
    """Return the run, not saved, of one configuration; it has failed already where its index could not be built, or
    what it searches by is not to be had here, or cannot search that index."""
    error = traceback = ""
    try:
        _require_searchable(index, configuration)
    except UnavailableError as refusal:
        error, traceback = refusal.message, traceback_of(refusal)
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
    """Raise UnavailableError where a configuration cannot search an index here."""
    if index.status == Index.Status.FAILED:
        raise UnavailableError(f"Its index could not be built. {index.error}")
    if lacking := lack(parts_of_run(index, configuration)):
        raise UnavailableError(f"{lacking[0].upper()}{lacking[1:]}.")
    if reason := unable(index, configuration):
        raise UnavailableError(f"{reason[0].upper()}{reason[1:]}")


def require_current(mapping: Mapping) -> DatasetVersion:
    """Return the version that the mapping is resolved for.

    Raises ConflictError unless that, and the collection, are what dataset and collection are now.
    """
    if mapping.dataset_version is None:
        raise ConflictError(f"The mapping {mapping.name!r} has not been resolved: resolve it first.")
    if is_stale(mapping):
        raise ConflictError(
            f"The dataset or the collection of the mapping {mapping.name!r} has changed since it was resolved: "
            "resolve it again."
        )
    return mapping.dataset_version


def require_searched(benchmark: Benchmark, act: str) -> None:
    """Raise ConflictError for a benchmark of external runs, which holds what was found elsewhere."""
    if benchmark.is_external:
        raise ConflictError(
            f"The benchmark {benchmark.name!r} holds external runs, which were made elsewhere: there is nothing to "
            f"{act}. Import a run into it instead."
        )


def require_found(mapping: Mapping) -> None:
    """Raise ConflictError where no judgment found its document: every value would be 0, and say nothing of a search."""
    if mapping.total_count and not mapping.mapped_count:
        raise ConflictError(
            f'None of the {mapping.total_count:,} judgments of "{mapping.dataset}" found its document in '
            f'"{mapping.collection}", so every value would be 0. Is that the right collection? The mapping '
            f'"{mapping}" lists why each found nothing.'
        )


class CloneError(ConflictError):
    """The benchmark cannot be made once more."""

    code = "cannot_clone"


@transaction.atomic
def clone(
    benchmark: Benchmark, *, name: str = "", owner: User | None = None, allow_missing: bool | None = None
) -> Benchmark:
    """Create a pending benchmark with the mapping, matrix, measures and options of another.

    It asks the version that its mapping is resolved for by now, of the newest indexes of the names in the matrix, among
    those that `owner` sees; a manifest runs on the very same. It is of the other's experiment where both are still
    those, since that says what was run. Without a `name` it is called a copy; `allow_missing` too is as there unless it
    is stated. Raises CloneError where an index is gone or not to be seen, and what `create_benchmark` raises for the
    mapping.
    """
    require_searched(benchmark, "clone")
    options, ending = BenchmarkOptions.of(benchmark), ", copy"
    try:
        made = create_benchmark(
            benchmark.mapping,
            replace(
                options,
                name=name or benchmark.name[: MAX_LENGTH - len(ending)] + ending,
                allow_missing=benchmark.allow_missing if allow_missing is None else allow_missing,
            ),
            owner=owner,
        )
    except MatrixError as error:
        raise CloneError(f"The benchmark {benchmark.name!r} cannot be cloned as it is. {error.message}") from None
    if benchmark.experiment and _basis(made) == _basis(benchmark):
        Origin.objects.create(benchmark=made, experiment=benchmark.experiment)
    return made


def _basis(benchmark: Benchmark) -> list[Any]:
    """Return which version of the dataset is asked, of which indexes."""
    return [benchmark.dataset_version_id, *benchmark.runs.order_by("run_order").values_list("index", flat=True)]
