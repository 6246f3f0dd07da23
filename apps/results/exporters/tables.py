"""Tables of runs or queries, as CSV or for Excel, and TREC runs and judgments for trec_eval."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from apps.datasets.models import DatasetVersion
from apps.execution.running.timing import find_execution
from apps.records.lists.final import CALLS
from apps.records.measuring.approximations import find_loss
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Run
from apps.records.models.provenance import Approximation
from apps.records.models.timing import TIMINGS
from apps.results.exporters.outcomes import ExportError, Names, load_names, require_evaluation, stream_outcomes
from apps.verdicts.configurations import list_keys
from apps.verdicts.expected import find_board_selection, report_leaderboard
from apps.verdicts.ranked_runs import load_evaluations, load_leaderboard
from benchbench.files.tables import render_line
from benchbench.files.trec import fits_column
from benchbench.files.workbooks import write_workbook
from benchbench.ir.measures.graded import SharedGrades

RUN_COLUMNS = (
    *("run_id", "run_order", "label", "config_hash", "status", "error"),
    *("failed_queries", "query_count", "unranked", "dataset_version", "weighting"),
)
PERCENTILES, TIMED, LOAD = ("p50", "p95", "p99"), ("search", "total"), ("offered", "achieved", "unsent")
FIGURE_COLUMNS = (
    *(f"{stage}_{percentile}_ms" for stage in TIMED for percentile in PERCENTILES),
    *("ann_recall", "ann_recall_at_depth", "ann_ndcg_loss", "ann_index_bytes"),
    *LOAD,
    *(f"latency_{percentile}_ms" for percentile in PERCENTILES),
)
EXPECTED_COLUMNS = ("expected_mean", "expected_low", "expected_high", "round_standing")
QUERY_COLUMNS = ("run_id", "run_order", "label", "dataset_version", "query_key", "query_text", "status", "error")


Row = list[Any]
Subject = TypeVar("Subject", Benchmark, Run)


def write_csv(rows: Callable[[Subject, DatasetVersion], Iterable[Row]]) -> Callable[[Subject, DatasetVersion], Any]:
    """Return the writer of rows as CSV."""
    return lambda subject, version: map(render_line, rows(subject, version))


def write_excel(rows: Callable[[Subject, DatasetVersion], Iterable[Row]]) -> Callable[[Subject, DatasetVersion], Any]:
    """Return the writer of rows as a workbook, in which Excel reads texts as they are."""
    return lambda subject, version: write_workbook(rows(subject, version))


def yield_runs(benchmark: Benchmark, version: DatasetVersion) -> Iterator[Row]:
    """Yield one row per run, in run order: configuration, means, milliseconds per query, FIGURE_COLUMNS, error.

    EXPECTED_COLUMNS have the verdict of the judging round that made the version, if it compared the runs.
    """
    board = load_leaderboard(benchmark, version=version)
    verdict = report_leaderboard(board, find_board_selection(board))
    expected = {run.run: [run.mean, *run.interval, run.standing] for run in verdict.runs} if verdict else {}
    rows = board.in_run_order
    keys = list_keys(row.run.config for row in rows)
    counts = {key: evaluation.query_count for key, evaluation in load_evaluations(benchmark, version=version).items()}
    yield [*RUN_COLUMNS, *keys, *benchmark.measures, *TIMINGS, "execution", *FIGURE_COLUMNS, *EXPECTED_COLUMNS]
    for row in rows:
        run = row.run
        facts = [str(run.pk), run.run_order, run.label, run.config_hash, run.status, run.error_message]
        facts += [run.failed_queries, counts.get(run.pk), row.unranked, version.number, benchmark.weighting]
        config = [run.config.get(key) for key in keys]
        times = [*map(run.times.get_mean, TIMINGS), find_execution(benchmark, row.ms)]
        figures = [*_list_figures(run, row.truth), *expected.get(run.pk, [None] * len(EXPECTED_COLUMNS))]
        yield [*facts, *config, *map(row.final.get, benchmark.measures), *times, *figures]


def _list_figures(run: Run, truth: str) -> list[Any]:
    """Return the values of FIGURE_COLUMNS; None where they do not apply.

    They are percentiles of single searches, the comparison with exact search, and the open loop.
    """
    loop, approximation = run.times.open_loop, run.lineage.approximation or Approximation()
    recalls = [share.mean for share in approximation.recall] or [None]
    loss = find_loss(run, truth)
    return [
        *(run.times.get_percentiles(f"{stage}_ms").get(name) for stage in TIMED for name in PERCENTILES),
        *(recalls[0], recalls[-1], loss and loss.cost, approximation.bytes),
        *(getattr(loop, name, None) for name in LOAD),
        *(loop and loop.latency_ms.get(name) for name in PERCENTILES),
    ]


def yield_queries(benchmark: Benchmark, version: DatasetVersion) -> Iterator[Row]:
    """Yield one row per run and query. A failed query has its error and no values; a failed run has one row.

    `documents` is a JSON list of external ids, best first.
    """
    runs = benchmark.runs.select_related("benchmark__dataset_version").order_by("run_order")
    yield from _yield_query_rows(benchmark, runs, version)


def yield_run(run: Run, version: DatasetVersion) -> Iterator[Row]:
    """Yield one row per query of a run; see `yield_queries`."""
    require_evaluation(run, version)
    yield from _yield_query_rows(run.benchmark, [run], version)


def _yield_query_rows(benchmark: Benchmark, runs: Iterable[Run], version: DatasetVersion) -> Iterator[Row]:
    measures = benchmark.measures
    columns = [*QUERY_COLUMNS, *measures, *TIMINGS, "execution", *CALLS, "documents"]
    yield columns
    names = Names()
    for run in runs:
        about = [str(run.pk), run.run_order, run.label, version.number]
        if run.status != Run.Status.COMPLETED:
            facts = [*about, None, None, run.status, run.error_message]
            yield [*facts, *[None] * (len(columns) - len(facts))]
            continue
        for outcome in stream_outcomes(run, require_evaluation(run, version), names):
            status, costs = "failed" if outcome.error else "completed", outcome.costs
            facts = [*about, outcome.query.key, outcome.query.text, status, outcome.error]
            times = [*map(costs.get, TIMINGS), find_execution(benchmark, costs.get("total_ms"))]
            documents = json.dumps(outcome.documents, ensure_ascii=False)
            values = [outcome.values[name] for name in measures]
            yield [*facts, *values, *times, *map(costs.get, CALLS), documents]


def write_trec_run(run: Run, version: DatasetVersion) -> Iterator[str]:
    """Write lines `qid Q0 docno rank score tag`. Scores fall strictly: trec_eval sorts by them, and gets our ranks.

    A query that failed or found no document has no line: the format cannot distinguish them. Where identical texts are
    judged alike, the first document of each text changes ids with that of the grade in `write_qrels`.
    """
    evaluation = require_evaluation(run, version)
    shared = _load_shared(run.benchmark, version)
    tag = re.sub(r"[^\w.@=-]+", "-", run.label).strip("-") or "run"
    for outcome in stream_outcomes(run, evaluation):
        key = _check_column(outcome.query.key, "query key")
        falling = format_scores(outcome.scores)
        documents = (
            shared[outcome.query.pk].rename(outcome.documents) if outcome.query.pk in shared else outcome.documents
        )
        ranked = zip(documents, falling, strict=True)
        yield "".join(
            f"{key} Q0 {_check_column(document, 'document id')} {rank} {score} {tag}\n"
            for rank, (document, score) in enumerate(ranked, start=1)
        )


def format_scores(scores: Sequence[float]) -> list[str]:
    """Return a ranking's scores, best first, as texts that fall strictly as float32, the type that trec_eval reads.

    Each is the score as float32, or the next float32 below the previous one if it would not fall.
    """
    largest = np.finfo(np.float32).max
    singles = np.clip(np.asarray(scores, np.float64), -1e38, largest).astype(np.float32)
    for index in range(1, len(singles)):
        if singles[index] >= singles[index - 1]:
            singles[index] = np.nextafter(singles[index - 1], np.float32(-np.inf))
    return [f"{score:.9g}" for score in singles.tolist()]  # nine digits identify a float32


def write_qrels(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write lines `qid 0 docno rel`: the truth of `version` under the policies of the benchmark.

    A judgment without a document has the id of its reference, or a generated one that no ranking contains. Of documents
    whose identical texts are judged alike one has the grade and the others at most 0: a text gains once.
    """
    grades = load_truth(benchmark, version).grades
    names = load_names({key for graded in grades.values() for key in graded}, benchmark)
    for query_id, key in version.queries.order_by("id").values_list("pk", "key"):
        qid = _check_column(key, "query key")
        graded = grades[query_id]
        if isinstance(graded, SharedGrades):
            graded = {key: min(0, grade) if key in graded.originals else grade for key, grade in graded.items()}
        yield "".join(
            f"{qid} 0 {_check_column(names[document], 'document id')} {grade}\n"
            for document, grade in sorted(graded.items(), key=lambda pair: (-pair[1], names[pair[0]]))
        )


def _load_shared(benchmark: Benchmark, version: DatasetVersion) -> dict[int, SharedGrades]:
    """Return the queries with documents of identical texts that are judged alike, with names for keys."""
    if benchmark.identical_texts == "different":
        return {}
    grades = load_truth(benchmark, version).grades
    names = load_names({key for graded in grades.values() for key in graded}, benchmark)
    return {
        query: SharedGrades({}, {names[key]: names[original] for key, original in graded.originals.items()})
        for query, graded in grades.items()
        if isinstance(graded, SharedGrades)
    }


def _check_column(text: str, kind: str) -> str:
    if not fits_column(text):
        raise ExportError(f"The {kind} {text[:80]!r} has white space, which a TREC column cannot hold: export as CSV.")
    return text
