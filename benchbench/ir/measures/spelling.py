"""Names of the library's measures: read strictly, and written with every parameter that decides a value."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, NoReturn

from benchbench.errors import BenchbenchError
from benchbench.ir.measures.definitions import DEFINITIONS

MAX_NAME_LENGTH = 100
MAX_CUTOFF = 1_000_000  # far past the end of any ranking
MAX_GRADE = 1000
WRITTEN = re.compile(r"(?P<name>\w+)(?:\((?P<parameters>[^()]*)\))?(?:@(?P<at>.*))?")
BOUNDS: dict[str, tuple[float, float]] = {  # of a parameter's values, both included; the library checks none
    "cutoff": (1, MAX_CUTOFF),
    "rel": (1, MAX_GRADE),  # 0 would make every judged document relevant
    "min_rel": (0, MAX_GRADE),
    "max_rel": (1, MAX_GRADE),
    "recall": (0.0, 1.0),  # trec_eval distinguishes two decimals
    "alpha": (0.0, 1.0),
    "p": (0.001, 0.999),
    "T": (0.001, 1000.0),
    "beta": (0.001, 1000.0),
}
MAX_GAINS = 20
BROKEN = {"Accuracy": "it divides by zero where a ranking ends with a relevant document"}


class MeasureError(BenchbenchError):
    """A text names no measure, or a measure cannot be computed from these judgments."""

    code = "measure"


def refuse(text: str, reason: str) -> NoReturn:
    """Raise the MeasureError for a text that names no measure."""
    quoted = text if len(text) <= MAX_NAME_LENGTH else f"{text[:MAX_NAME_LENGTH]}…"
    raise MeasureError(f"{quoted!a} is not a measure: {reason}.")


def check_cutoff(text: str, cutoff: int | None) -> None:
    """Refuse a cutoff at which nothing is read, or that no ranking reaches; `text` is the name as written."""
    if cutoff is not None and not 1 <= cutoff <= MAX_CUTOFF:
        refuse(text, f"the cutoff must be a whole number from 1 to {MAX_CUTOFF:,}")


def read(text: str) -> Any:
    """Return the library's measure that `text` names. Its own parser evaluates less strictly. Raises MeasureError."""
    from ir_measures.measures import registry

    if len(text) > MAX_NAME_LENGTH:
        refuse(text, f"a name has at most {MAX_NAME_LENGTH} characters")
    written = WRITTEN.fullmatch(text)
    if written is None:
        refuse(text, "write a name and a cutoff, such as nDCG@10")
    kind = registry.get(written["name"])
    if kind is not None and kind.NAME in BROKEN:
        refuse(text, f"the library ir_measures cannot compute {kind.NAME}: {BROKEN[kind.NAME]}")
    if kind is None:
        refuse(
            text,
            f"the measure {written['name']!r} does not exist; choose one of {', '.join(DEFINITIONS)}, or of the "
            "library ir_measures, such as ERR@20 and RBP(p=0.8)",
        )
    parameters = _parse_parameters(text, written["parameters"] or "")
    if written["at"] is not None:
        if kind.AT_PARAM in parameters:
            refuse(text, f"{kind.AT_PARAM} is given twice")
        parameters[kind.AT_PARAM] = _parse_at(text, written["at"])
    if kind.NAME == "RBP":  # the one measure of binary relevance for which the library has no threshold of its own
        parameters.setdefault("rel", 1)
    if unknown := set(parameters) - set(kind.SUPPORTED_PARAMS):
        takes = ", ".join(kind.SUPPORTED_PARAMS) or "none"
        refuse(text, f"{kind.NAME} has no parameter {min(unknown)!r}; it has: {takes}")
    checked = {name: _check(text, name, value, kind.SUPPORTED_PARAMS[name]) for name, value in parameters.items()}
    if checked.get("max_rel", MAX_GRADE) <= checked.get("min_rel", 0):
        refuse(text, "max_rel must be above min_rel")
    return kind(**checked)


def write(measure: Any) -> str:
    """Return a measure's name, which reads back: the library's, with numbers that it leaves out, as in RBP(p=0.8)."""
    kinds, at = measure.SUPPORTED_PARAMS, measure.AT_PARAM
    values = {name: measure[name] for name in kinds if name in measure.params or kinds[name].dtype is float}
    written = [
        f"{name}={_write_gains(value) if isinstance(value, dict) else repr(value)}"
        for name, value in values.items()
        if name != at and value != {} and (kinds[name].dtype is float or value != kinds[name].default)
    ]
    brackets = f"({','.join(written)})" if written else ""
    return f"{measure.NAME}{brackets}" + (f"@{values[at]}" if at in values else "")


def _write_gains(gains: dict[int, int]) -> str:
    return f"{{{','.join(f'{grade}:{gain}' for grade, gain in sorted(gains.items()))}}}"


def _parse_at(text: str, at: str) -> int | float:
    if re.fullmatch(r"[0-9]+", at):
        return int(at)
    if re.fullmatch(r"[0-9]*\.[0-9]+", at):
        return float(at)
    refuse(text, "a number must follow the @, such as nDCG@10")


def _parse_parameters(text: str, written: str) -> dict[str, Any]:
    """Return the parameters written in a measure's brackets; only literals, nothing is evaluated."""
    reason = "write parameters by name, such as RBP(p=0.8)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what cannot be a literal anyway
            call = ast.parse(f"measure({written})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            parameters = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
            if len(parameters) == len(call.keywords):
                return parameters
            reason = "a parameter is given twice"
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass
    refuse(text, reason)


def _check(text: str, name: str, value: Any, info: Any) -> Any:
    """Return the value of a parameter, as a float where the library wants one; refuse one that it would misread."""
    if name in BOUNDS:
        return _check_number(text, name, value, integer=info.dtype is int)
    if info.dtype is dict:
        if _are_gains(value):
            return {grade: gain for grade, gain in value.items() if grade != gain}  # a grade gains itself anyway
        refuse(text, f"{name} maps 1 to {MAX_GAINS} grades to gains, both whole numbers from 0 to {MAX_GRADE:,}")
    if not info.validate(value) or type(value) is not info.dtype:
        refuse(text, f"{name} cannot be {value!r}")
    return value


def _check_number(text: str, name: str, value: Any, *, integer: bool) -> float:
    low, high = BOUNDS[name]
    fits = type(value) is int or (type(value) is float and not integer)
    if fits and low <= value <= high and (name != "recall" or value == round(value, 2)):
        return int(value) if integer else float(value)
    kind = "a whole number" if integer else "a number with at most two decimals" if name == "recall" else "a number"
    refuse(text, f"{'the ' * (name == 'cutoff')}{name} must be {kind} from {low:,} to {high:,}")


def _are_gains(value: object) -> bool:
    if not isinstance(value, dict) or not 1 <= len(value) <= MAX_GAINS:
        return False
    return all(type(number) is int and 0 <= number <= MAX_GRADE for pair in value.items() for number in pair)
