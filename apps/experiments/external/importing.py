"""Import of external runs: stored as ranked, measured like any other run, without searching."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from django.contrib.auth.models import User
from django.db.models import Max
from django.utils import timezone

from apps.collections.stubs import add_ids
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.versions import choose_weighting
from apps.execution.defining.creating import check_policies
from apps.experiments.external.reports import RunImportError, RunReport, read_for
from apps.mappings.creating import ensure_external
from apps.operations.models import Status
from apps.records.lists.final import FinalList, ListKey, store_final_lists
from apps.records.lists.reading import require_rankings
from apps.records.measuring.again import list_scored_versions
from apps.records.measuring.evaluating import evaluate_runs
from apps.records.measuring.measures import list_measures
from apps.records.models import Benchmark, ListSource, Run
from apps.records.planning import build_own_key
from apps.records.provenance import build_provenance, read_code_version
from benchbench.database.failures import read_again, refresh
from benchbench.deleting import referring
from benchbench.errors import ConflictError
from benchbench.files.flowbaby import OrderBy
from benchbench.files.runs import Ranked, RunFile
from benchbench.ir.measures.spelling import MAX_CUTOFF
from benchbench.ir.records import ScoredList
from benchbench.timestamps import timestamp

CUTOFFS = (5, 10, 20)
PRIMARY_K = 10
LONGEST_LABEL = 200
AT_ONCE = 200  # queries per INSERT statement


class RunImportedError(ConflictError):
    """The benchmark already has these rankings."""

    code = "run_imported"


@dataclass(frozen=True, slots=True)
class ImportedRuns:
    """The benchmark with the new runs, and each run with the report on its file."""

    benchmark: Benchmark
    runs: list[tuple[Run, RunReport]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBenchmark:
    """Options of a new benchmark of imported runs. `k` has the cutoffs of the usual measures; `measures` are added.

    With `exclude_self`, rankings lose the document whose id is the query's key.
    """

    name: str = ""
    measures: Sequence[str] = ()
    k: Sequence[int] = ()
    empty_queries: str = "zero"
    weighting: str = ""  # "demand" if the queries' weights differ, else "equal"
    exclude_self: bool = False
    owner: User | None = None


@referring("The run")
def import_runs(
    paths: Sequence[Path],
    *,
    dataset: Dataset,
    version: DatasetVersion | None = None,
    benchmark: Benchmark | None = None,
    new: NewBenchmark = NewBenchmark(),
    format: str = "",
    order_by: OrderBy | None = None,
    is_upload: bool = False,
) -> ImportedRuns:
    """Import each file of `paths` (TREC, Flowbaby, Quepid) as a completed run and measure it; all of them or none.

    The runs are measured on `version`, by default the newest frozen one of `dataset`, in a `new` benchmark. With
    `benchmark`, one of external runs, its version and measures apply, so that all its runs are comparable. Documents
    are ranked as by `benchbench score`, and the order is stored. A query that a file lacks counts as 0.

    Raises RunImportError, FileFormatError and MeasuresError for invalid files and options. Raises RunImportedError if
    the benchmark already has the rankings, and ConflictError if the dataset or benchmark cannot take runs.
    """
    if not paths:
        raise RunImportError("Name at least one file of rankings.", field="file")
    if benchmark is None:
        benchmark = _create_benchmark(dataset, version, new)
    else:
        benchmark = _lock_benchmark(benchmark, dataset, version, has_values=bool(new.name or new.measures or new.k))
    imported = []
    for path in paths:
        run_file, report = read_for(
            benchmark.dataset_version, path, format=format, order_by=order_by, is_upload=is_upload
        )
        run = _store_run(benchmark, run_file, order_by)
        imported.append((run, report))
        _store_rankings(run, run_file)
    runs = [run for run, _ in imported]
    for each in {benchmark.dataset_version, *list_scored_versions(benchmark)}:
        evaluate_runs(benchmark, runs, version=each)
    benchmark.total_runs = benchmark.runs.count()
    benchmark.status, benchmark.completed_at = Status.COMPLETED, timezone.now()
    benchmark.save(update_fields=["name", "total_runs", "status", "completed_at", "updated_at"])
    return ImportedRuns(benchmark, imported)


def choose_version(
    dataset: Dataset, *, version: DatasetVersion | None = None, benchmark: Benchmark | None = None
) -> DatasetVersion:
    """Return the version to measure runs on: the benchmark's, else `version`, else the newest frozen one.

    Raises RunImportError if it is not a frozen version of `dataset`, and ConflictError if the dataset has no such.
    """
    if benchmark is not None:
        benchmark_version = benchmark.dataset_version
        if benchmark_version.dataset_id != dataset.pk or version not in (None, benchmark_version):
            raise RunImportError(
                f"The benchmark {benchmark.name!r} is measured on {benchmark_version}: import into a new benchmark.",
                field="benchmark",
            )
        return benchmark_version
    if version is not None:
        if version.dataset_id != dataset.pk or version.frozen_at is None:
            raise RunImportError(f'{version} is not a frozen version of "{dataset}": choose one.', field="version")
        return version
    newest = dataset.versions.filter(frozen_at__isnull=False).order_by("-number").first()
    if newest is None:
        raise ConflictError(f'The dataset "{dataset}" has no frozen version yet: freeze its draft.', field="dataset")
    return newest


def _create_benchmark(dataset: Dataset, version: DatasetVersion | None, new: NewBenchmark) -> Benchmark:
    version = choose_version(dataset, version=version)
    name = new.name.strip()
    if len(name) > LONGEST_LABEL:
        raise RunImportError(
            f"The name has {len(name)} characters; it must have at most {LONGEST_LABEL}.", field="name"
        )
    if not all(1 <= cutoff <= MAX_CUTOFF for cutoff in new.k):
        raise RunImportError(f"k: every cutoff must be from 1 to {MAX_CUTOFF:,}.", field="k")
    weighting = new.weighting or choose_weighting(version)
    check_policies(empty_queries=new.empty_queries, weighting=weighting)
    cutoffs = sorted({*(new.k or CUTOFFS), PRIMARY_K})
    return Benchmark.objects.create(
        name=name,  # if blank, the label of the first run follows
        owner=new.owner,
        mapping=ensure_external(dataset),
        dataset_version=version,
        matrix={},
        measures=list_measures(cutoffs, new.measures, version),
        primary_k=PRIMARY_K,
        k_values=cutoffs,
        empty_queries=new.empty_queries,
        weighting=weighting,
        exclude_self=new.exclude_self,
    )


def _lock_benchmark(
    benchmark: Benchmark, dataset: Dataset, version: DatasetVersion | None, *, has_values: bool
) -> Benchmark:
    """Return the benchmark, locked. Raises ConflictError or RunImportError if it cannot take the runs."""
    rows = Benchmark.objects.select_for_update(of=("self",)).select_related("mapping__collection", "dataset_version")
    benchmark = read_again(rows, benchmark.pk)
    if not benchmark.is_external:
        raise ConflictError(
            f"The benchmark {benchmark.name!r} has its own matrix: import into a new benchmark, and compare the runs "
            "of both.",
            field="benchmark",
        )
    require_rankings(benchmark)
    choose_version(dataset, version=version, benchmark=benchmark)
    if has_values:
        raise RunImportError(
            f"The benchmark {benchmark.name!r} already has a name and measures: leave them out.", field="benchmark"
        )
    ensure_external(dataset)
    refresh(benchmark.mapping)
    return benchmark


def _hash_rankings(run_file: RunFile, keys: Iterable[str]) -> str:
    """Return the SHA-256 of the rankings: query keys, documents and scores."""
    digest = sha256()
    for key in keys:
        ranking = run_file.rankings.get(key)
        digest.update(json.dumps([key, list(ranking.documents) if ranking else []]).encode())
        digest.update(np.asarray(ranking.scores if ranking else [], "<f8").tobytes())
    return digest.hexdigest()


def _store_run(benchmark: Benchmark, run_file: RunFile, order_by: OrderBy | None) -> Run:
    """Store the run of a file. Raises RunImportedError if the benchmark already has its rankings."""
    keys = sorted(benchmark.dataset_version.queries.values_list("key", flat=True))
    rankings = _hash_rankings(run_file, keys)
    same = benchmark.runs.filter(config_hash=rankings[:16]).first()
    if same is not None:
        raise RunImportedError(
            f'{run_file.name} has the same rankings as run {same.run_order}, "{same.label}", of {benchmark.name!r}: '
            "nothing was imported."
        )
    label = _choose_label(benchmark, run_file)
    if not benchmark.name:
        benchmark.name = label
    order = (benchmark.runs.aggregate(last=Max("run_order"))["last"] or 0) + 1
    now = timezone.now()
    run = Run(
        benchmark=benchmark,
        run_order=order,
        label=label,
        is_external=True,
        config_hash=rankings[:16],  # the length of a configuration's hash
        status=Run.Status.COMPLETED,
        completed_at=now,  # its times are unknown
    )
    file = {
        "name": run_file.name,
        "sha256": run_file.sha256,
        "format": run_file.format,
        "tags": list(run_file.tags[:20]),
        "order_by": order_by,
        "imported_at": timestamp(now),
        "imported_by": read_code_version(),
    }
    run.provenance = build_provenance(run, made_by=[], file=file)
    run.source = ListSource.objects.create(benchmark=benchmark, key=build_own_key(run))
    run.save(force_insert=True)
    return run


def _choose_label(benchmark: Benchmark, run_file: RunFile) -> str:
    """Return a free label for a run: the tag of the file, else the file name; both or a number if it is taken."""
    stem = Path(run_file.name.removesuffix(".gz")).stem
    tag = run_file.tags[0] if len(run_file.tags) == 1 else ""
    label = (tag or stem)[:LONGEST_LABEL]
    labels = set(benchmark.runs.values_list("label", flat=True))
    if label in labels and stem != label:
        label = f"{label[: LONGEST_LABEL // 2]} ({stem[: LONGEST_LABEL // 3]})"
    numbered = (f"{label[: LONGEST_LABEL - 8]} {number}" for number in range(2, len(labels) + 3))
    return label if label not in labels else next(name for name in numbered if name not in labels)


def _store_rankings(run: Run, run_file: RunFile) -> None:
    """Store a ranking for every query of the version; queries that the file lacks get an empty ranking."""
    documents = {document for ranked in run_file.rankings.values() for document in ranked.documents}
    keys = add_ids(run.benchmark.mapping.collection, documents)
    queries = list(run.benchmark.dataset_version.queries.order_by("id").values_list("pk", "key"))
    for start in range(0, len(queries), AT_ONCE):
        group = queries[start : start + AT_ONCE]
        excluded = {pk: keys.get(key) for pk, key in group} if run.benchmark.exclude_self else {}
        rankings = ((pk, run_file.rankings.get(key), excluded.get(pk)) for pk, key in group)
        store_final_lists([_build_final_list(run, pk, ranked, keys, excludes) for pk, ranked, excludes in rankings])


def _build_final_list(
    run: Run, query_id: int, ranked: Ranked | None, keys: dict[str, int], excludes: int | None
) -> FinalList:
    documents = ScoredList.empty()
    if ranked is not None:
        ids = np.fromiter((keys[document] for document in ranked.documents), np.int64, len(ranked.documents))
        documents = ScoredList(ids, ranked.scores).select(ids != (excludes or 0))
    return FinalList.of_documents(ListKey(run.source_id or 0, query_id), documents, [len(documents)])
