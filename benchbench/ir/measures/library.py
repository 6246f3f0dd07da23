"""Further measures by the library ir_measures, from our ranks and under our policies.

The library sorts by score, and its providers break ties differently. It therefore gets strictly falling scores, which
preserve the stored order. A query without a value, because nothing was found or judged, scores 0.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchbench.errors import BenchbenchError
from benchbench.ir.measures.definitions import DEFINITIONS
from benchbench.ir.measures.graded import GradedRankings, Values


class MeasureError(BenchbenchError):
    """A text names no measure, or a measure cannot be computed from these judgments."""

    code = "measure"


WRITTEN = re.compile(r"(?P<name>\w+)(?:\((?P<parameters>[^()]*)\))?(?:@(?P<at>[0-9.]+))?")


@lru_cache(maxsize=1000)
def canonicalize(text: str) -> str:
    """Return the library's spelling of the measure that `text` names: `RBP(rel=1)` for `RBP(p=.8)`.

    An alias of one of our measures becomes its name: `MAP` is `AP`. Raises MeasureError.
    """
    measure = _parse(text)
    name = str(measure)
    if name.partition("@")[0] not in DEFINITIONS:
        _require_computable(measure)
    return name


def evaluate(texts: Sequence[str], graded: GradedRankings) -> Values:
    """Return the values of the measures with these canonical names, (len(texts), q). Grades must be whole numbers."""
    import ir_measures

    measures = {_parse(text): row for row, text in enumerate(texts)}
    values = np.zeros((len(texts), len(graded.lengths)))
    try:
        for metric in ir_measures.iter_calc(list(measures), list(_judgments(graded)), list(_ranked(graded))):
            values[measures[metric.measure], int(metric.query_id)] = metric.value
    except subprocess.CalledProcessError as error:
        raise MeasureError(
            f"{', '.join(texts)}: gdeval, the script that the library runs for ERR and for exponential "
            "gains, failed. It needs grades of at most 4: leave the measure out, or use another scale."
        ) from error
    return values


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
    measure = _parse(text)
    return getattr(measure, "PRETTY_NAME", str(measure)), getattr(measure, "SHORT_DESC", "")


def _parse(text: str) -> Any:
    """Return the library's measure. Its own parser uses parts of `ast` that newer versions of Python lack."""
    from ir_measures.measures import registry

    written = WRITTEN.fullmatch(text)
    if written is None:
        raise MeasureError(f"{text!r} is not a measure; write a name and a cutoff, such as nDCG@10.")
    kind = registry.get(written["name"])
    if kind is None:
        raise MeasureError(
            f"The measure {written['name']!r} does not exist; choose one of {', '.join(DEFINITIONS)}, "
            "or of the library ir_measures, such as ERR@20 and RBP(p=0.8)."
        )
    parameters = _parse_parameters(text, written["parameters"] or "")
    if written["at"]:
        parameters[kind.AT_PARAM] = ast.literal_eval(written["at"])
    if kind.NAME == "RBP":  # the one measure of binary relevance for which the library has no threshold of its own
        parameters.setdefault("rel", 1)
    unknown = set(parameters) - set(kind.SUPPORTED_PARAMS)
    if unknown:
        takes = ", ".join(kind.SUPPORTED_PARAMS) or "none"
        raise MeasureError(f"The measure {kind.NAME} has no parameter {min(unknown)!r}; it has: {takes}.")
    return kind(**parameters)


def _parse_parameters(text: str, written: str) -> dict[str, Any]:
    """Return the parameters written in a measure's brackets; only literals, nothing is evaluated."""
    try:
        call = ast.parse(f"measure({written})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError):
        pass
    raise MeasureError(f"{text!r} is not a measure; write parameters by name, such as RBP(p=0.8).")


def _require_computable(measure: Any) -> None:
    import ir_measures

    pipeline: Any = ir_measures.DefaultPipeline
    try:
        computable = pipeline.supports(measure)
    except AssertionError as error:
        raise MeasureError(f"The measure {measure}: {str(error).partition('=<')[0]}.") from error
    if not computable:
        takes = ", ".join(measure.SUPPORTED_PARAMS) or "none"
        raise MeasureError(
            f"The library ir_measures cannot compute {measure} as it is written; its parameters are: "
            f"{takes}. It may need another parameter, such as a cutoff (ERR@20), or a program that is "
            "not installed (perl for ERR)."
        )


def _ranked(graded: GradedRankings) -> Iterator[Any]:
    from ir_measures import ScoredDoc

    for query, length in enumerate(graded.lengths.tolist()):
        for rank in range(length):
            yield ScoredDoc(str(query), str(rank), float(length - rank))


def _judgments(graded: GradedRankings) -> Iterator[Any]:
    """Yield the judgments of each query: those of ranked documents under their rank, then those of missing ones.

    trec_eval never returns from a query whose grades are all negative. Nothing there is relevant, and a grade below 0
    gains no less than 0 does, so such grades become 0.
    """
    from ir_measures import Qrel

    for query, (row, truth) in enumerate(zip(graded.grades, graded.truths, strict=True)):
        lowest = 0 if truth and max(truth.values()) < 0 else -np.inf
        ranked = {str(rank): row[rank].item() for rank in np.flatnonzero(~np.isnan(row))}
        missed = Counter(map(float, truth.values())) - Counter(ranked.values())
        unfound = {f"unfound-{number}": grade for number, grade in enumerate(missed.elements())}
        for document, grade in (ranked | unfound).items():
            if not grade.is_integer():
                raise MeasureError(f"Measures of the library ir_measures need whole-number grades, not {grade}.")
            yield Qrel(str(query), document, int(max(grade, lowest)))
