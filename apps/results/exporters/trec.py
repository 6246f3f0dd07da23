"""TREC: the rankings of a run, and the judgments of a benchmark, as trec_eval reads them."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.models import Benchmark, Run
from apps.datasets.models import DatasetVersion
from apps.results.exporters.outcomes import ExportError, measured, names_of, outcomes_of
from benchbench.files.trec import fits_column


def write_run(run: Run, version: DatasetVersion) -> Iterator[str]:
    """Lines `qid Q0 docno rank score tag`. Scores fall strictly: trec_eval orders by them, and finds our ranks.

    A query that failed, or found nothing, has no line: the format cannot say which.
    """
    evaluation = measured(run, version)
    tag = re.sub(r"[^\w.@=-]+", "-", run.label).strip("-") or "run"
    for outcome in outcomes_of(run, evaluation):
        key = _column(outcome.query.key, "query key")
        falling = strictly_falling(outcome.scores)
        ranked = zip(outcome.documents, falling, strict=True)
        yield "".join(
            f"{key} Q0 {_column(document, 'document id')} {rank} {score} {tag}\n"
            for rank, (document, score) in enumerate(ranked, start=1)
        )


def strictly_falling(scores: Sequence[float]) -> list[str]:
    """Return scores of a ranking, best first, as texts that fall strictly as the float32 that trec_eval reads.

    Each is the score as float32, or the next float32 below the one before where that would not fall.
    """
    largest = np.finfo(np.float32).max
    singles = np.clip(np.asarray(scores, np.float64), -1e38, largest).astype(np.float32)
    for place in range(1, len(singles)):
        if singles[place] >= singles[place - 1]:
            singles[place] = np.nextafter(singles[place - 1], np.float32(-np.inf))
    return [f"{score:.9g}" for score in singles.tolist()]  # nine digits name a float32


def write_qrels(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Lines `qid 0 docno rel`: the truth of `version` that the benchmark was measured against, under its policies.

    A judgment without a document stands under the id that it states, or a made one, which no ranking contains.
    """
    grades = truth_of(benchmark, version).grades
    names = names_of({key for graded in grades.values() for key in graded}, benchmark)
    for query_id, key in version.queries.order_by("id").values_list("pk", "key"):
        qid = _column(key, "query key")
        yield "".join(
            f"{qid} 0 {_column(names[document], 'document id')} {grade}\n"
            for document, grade in sorted(grades[query_id].items(), key=lambda pair: (-pair[1], names[pair[0]]))
        )


def _column(text: str, what: str) -> str:
    if not fits_column(text):
        raise ExportError(
            f"The {what} {text[:80]!r} has white space, which a column of a TREC file cannot hold: export as CSV."
        )
    return text
