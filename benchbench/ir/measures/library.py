"""Further measures by the library ir_measures, from our ranks and under our policies.

The library sorts by score, and its providers break ties differently. It therefore gets strictly falling scores, which
preserve the stored order. A query without a value, because nothing was found or judged, scores 0.
"""

from __future__ import annotations

import logging
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchbench.ir.measures import spelling
from benchbench.ir.measures.definitions import DEFINITIONS
from benchbench.ir.measures.graded import GradedRankings, Values
from benchbench.ir.measures.spelling import MeasureError

MOST_LEVELS = 1000  # of grades that measures with graded gains get from trec_eval


@lru_cache(maxsize=1000)
def canonicalize(text: str) -> str:
    """Return the name of the measure that `text` names: `RBP(p=0.8,rel=1)` for `RBP`, `P@5` for `P(rel=1)@5`.

    An alias of one of our measures becomes its name: `MAP` is `AP`. Raises MeasureError.
    """
    measure = spelling.read(text)
    name = spelling.write(measure)
    if len(name) > spelling.MAX_NAME_LENGTH:
        spelling.refuse(text, f"with its parameters it is {name}, longer than {spelling.MAX_NAME_LENGTH} characters")
    if name.partition("@")[0] not in DEFINITIONS:
        _require_computable(text, measure)
    return name


@lru_cache(maxsize=1000)
def is_own_spelling(text: str) -> bool:
    """Return whether `text` is how the library itself writes a measure: `RBP(rel=1)`. Raises MeasureError."""
    return repr(spelling.read(text)) == text


def evaluate(texts: Sequence[str], graded: GradedRankings) -> Values:
    """Return the values of the measures with these names, (len(texts), q). Grades must be whole numbers.

    Raises MeasureError where the library cannot compute one.
    """
    # The library mixes up measures of all documents and of judged ones, if it computes them together.
    rows: defaultdict[tuple[Regrading, bool], defaultdict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, text in enumerate(texts):
        regrading, measure = reduce(spelling.read(text))
        rows[regrading, bool(measure.params.get("judged_only"))][measure].append(row)
    values = np.zeros((len(texts), len(graded.lengths)))
    try:
        for (regrading, _), measures in rows.items():
            _fill(values, measures, graded, regrading)
    except subprocess.CalledProcessError as error:
        raise MeasureError(
            f"{', '.join(texts)}: gdeval, the script that the library runs for ERR and for exponential "
            "gains, failed. It needs grades of at most 4: leave the measure out, or use another scale."
        ) from error
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise MeasureError(
            f"{', '.join(texts)}: the library ir_measures fails at these rankings and judgments "
            f"({type(error).__name__}: {error}). Leave the measure out."
        ) from error
    if np.isinf(values).any():
        raise MeasureError(f"{', '.join(texts)}: the library ir_measures has an infinite value. Leave the measure out.")
    return np.nan_to_num(values)


def _fill(values: Values, measures: Mapping[Any, Sequence[int]], graded: GradedRankings, regrading: Regrading) -> None:
    """Write the values of `measures`, of changed grades, into their rows of `values` (m, q)."""
    import ir_measures

    judgments = list(_judgments(graded, regrading))
    if any(measure.NAME == "nDCG" for measure in measures):
        greatest = max((judgment.relevance for judgment in judgments), default=0)
        if greatest > MOST_LEVELS:
            raise MeasureError(f"nDCG of the library ir_measures needs grades of at most {MOST_LEVELS:,}: use ours.")
    for metric in ir_measures.iter_calc(list(measures), judgments, list(_ranked(graded))):
        values[measures[metric.measure], int(metric.query_id)] = metric.value


@dataclass(frozen=True, slots=True)
class LibraryMeasure:
    """A measure of the library as a list shows it; `parameters` are the names of what its brackets take."""

    name: str
    title: str
    meaning: str
    parameters: str


def list_measures() -> list[LibraryMeasure]:
    """Return every measure of the library, by name; some need a parameter or a program."""
    import ir_measures

    kinds = {kind.NAME: kind for kind in ir_measures.measures.registry.values()}
    return [
        LibraryMeasure(
            name,
            getattr(kind, "PRETTY_NAME", None) or name,
            getattr(kind, "SHORT_DESC", None) or "",
            ", ".join(kind.SUPPORTED_PARAMS),
        )
        for name, kind in sorted(kinds.items(), key=lambda item: item[0].lower())
    ]


def describe(text: str) -> tuple[str, str]:
    """Return the full name of one of the library's measures and what the library says of it in a sentence."""
    measure = spelling.read(text)
    return getattr(measure, "PRETTY_NAME", str(measure)), getattr(measure, "SHORT_DESC", "")


# Rankings and grades at which measures of the library have failed: relevant documents alone, at the end or missing.
SAMPLE = GradedRankings.from_rankings(
    [["a", "x", "b", "y", "c"], ["a"], ["a", "b"], ["x"], [], ["x", "a"]],
    [{"a": 1, "b": 4, "c": 2, "d": 1, "y": 0}, {"a": 1}, {"a": 3, "b": -1}, {"x": 0}, {"a": 1}, {"a": 2}],
)


def _require_computable(text: str, measure: Any) -> None:
    """Refuse a measure that the library does not support, or fails to compute of SAMPLE."""
    import ir_measures

    pipeline: Any = ir_measures.DefaultPipeline
    try:
        computable = pipeline.supports(measure)
    except AssertionError as error:
        spelling.refuse(text, str(error).partition("=<")[0])
    if not computable:
        takes = ", ".join(measure.SUPPORTED_PARAMS) or "none"
        spelling.refuse(
            text,
            f"the library ir_measures cannot compute {measure} as it is written; its parameters are: "
            f"{takes}. It may need another parameter, such as a cutoff (ERR@20), or a program that is "
            "not installed (perl for ERR)",
        )
    notices = logging.getLogger("ir_measures.cwl_eval")
    notices.addFilter(_drop)  # warnings about the grades of SAMPLE
    try:
        evaluate([text], SAMPLE)
    except MeasureError as error:
        spelling.refuse(text, f"it cannot be computed. {error.message.rstrip('.')}")
    finally:
        notices.removeFilter(_drop)


def _drop(record: logging.LogRecord) -> bool:
    return False


def _ranked(graded: GradedRankings) -> Iterator[object]:
    from ir_measures import ScoredDoc

    for query, length in enumerate(graded.lengths.tolist()):
        for rank in range(length):
            yield ScoredDoc(str(query), str(rank), float(length - rank))


def _judgments(graded: GradedRankings, regrading: Regrading) -> Iterator[Any]:
    """Yield the judgments of each query: those of ranked documents under their rank, then those of missing ones.

    trec_eval never returns from a query whose grades are all negative. Nothing there is relevant, and a grade below 0
    gains no less than 0 does, so such grades become 0.
    """
    from ir_measures import Qrel

    regrade = regrading.build()
    for query, (row, truth) in enumerate(zip(graded.grades, graded.truths, strict=True)):
        lowest = 0 if truth and max(truth.values()) < 0 else -np.inf
        ranked = {str(rank): row[rank].item() for rank in np.flatnonzero(~np.isnan(row))}
        missed = Counter(map(float, truth.values())) - Counter(ranked.values())
        unfound = {f"unfound-{number}": grade for number, grade in enumerate(missed.elements())}
        for document, grade in (ranked | unfound).items():
            if not grade.is_integer():
                raise MeasureError(f"Measures of the library ir_measures need whole-number grades, not {grade}.")
            yield Qrel(str(query), document, regrade(int(max(grade, lowest))))


@dataclass(frozen=True, slots=True)
class Regrading:
    """A change of grades: 1 from `threshold` up and 0 below, or the gain of each grade. Negative grades stay."""

    threshold: int | None = None
    gains: tuple[tuple[int, int], ...] = ()

    def build(self) -> Callable[[int], int]:
        """Return the function from a grade to its new one."""
        if self.threshold is not None:
            threshold = self.threshold
            return lambda grade: grade if grade < 0 else int(grade >= threshold)
        gains = dict(self.gains)
        return lambda grade: gains.get(grade, grade)


def reduce(measure: Any) -> tuple[Regrading, Any]:
    """Return the change of grades, and the measure to compute of the changed grades for the value of `measure`.

    trec_eval, written in C, reads past its arrays where a threshold is above all grades of a query, takes a time
    quadratic in the gains, and memory for each grade up to the greatest. A document is relevant to it if its grade is
    at least 1, so grades of 0 and 1 give the same values.
    """
    parameters = dict(measure.params)
    if "rel" in measure.SUPPORTED_PARAMS:
        threshold = parameters.get("rel", 1)
        if "rel" in parameters:
            parameters["rel"] = 1
        return Regrading(threshold=threshold), type(measure)(**parameters)
    gains = parameters.pop("gains", {})
    return Regrading(gains=tuple(sorted(gains.items()))), type(measure)(**parameters)
