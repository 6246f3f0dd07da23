"""Reading the rules of a gate from YAML. The format is described in docs/gates.md."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Change, Floor, MustNotFail, Rules
from benchbench.ir.measures import FORMULAS, Measure, MeasureError, definition_of
from benchbench.ir.profiles import Mean
from benchbench.ir.slices import MINIMUM
from benchbench.reading import strict_yaml
from benchbench.reading.strict_json import MalformedFileError, canonical
from benchbench.reading.strict_yaml import MAX_CHARACTERS

RULES = ("floors", "slices", "against_baseline", "must_not_fail", "false_answers", "latency_ms", "coverage")
KEYS = (*RULES, "runs_may_fail", "alpha")
STATISTICS = ("mean", "p50", "p95", "p99")
NAMES = {name.lower(): name for name in FORMULAS} | {
    "precision": "P",
    "recall": "R",
    "map": "AP",
    "mrr": "RR",
}


class RulesError(BenchbenchError):
    """The text is no set of rules: what is wrong, and under which key."""

    code = "gate_rules"


def read_rules(rules: str | dict[str, Any], *, where: str = "gate.yaml") -> Rules:
    """Return the rules that a YAML text states, or the same as a JSON object; `where` names the file in errors.

    No query may have failed unless the rules say how many: the means are over the others. Reading is strict: an unknown
    key, a key twice, a value of the wrong kind or out of range, and a text without a single rule raise RulesError,
    which names the key.
    """
    try:
        if isinstance(rules, str):
            return _rules(strict_yaml.parse(rules, where=where, as_written=True))
        size = len(canonical(rules))
        if size > MAX_CHARACTERS:
            raise RulesError(f"it has {size:,} characters; rules have at most {MAX_CHARACTERS:,}.")
        return _rules(_as_written(rules))
    except MalformedFileError as error:
        raise RulesError(error.message, field="rules") from None
    except (MeasureError, RulesError) as error:
        raise RulesError(f"{where}: {error.message}", field="rules") from None


def _as_written(value: Any) -> Any:
    """Return a JSON value with its scalars as the texts that they are in YAML."""
    if isinstance(value, dict):
        return {key: _as_written(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_written(inner) for inner in value]
    return value if isinstance(value, str) else json.dumps(value)


def _rules(document: Any) -> Rules:
    sections = _mapping(document, known=KEYS)
    coverage = _mapping(sections.get("coverage", {}), "coverage")
    failed = coverage.pop("failed_queries", None)
    rules = Rules(
        floors=(
            *_floors(sections.get("floors", {}), "floors"),
            *_slice_floors(sections.get("slices", {})),
            *_floors(coverage, "coverage", only=("Judged",)),
        ),
        changes=tuple(_changes(sections.get("against_baseline", {}))),
        must_not_fail=tuple(_must_not_fail(sections.get("must_not_fail", []))),
        false_answers=_false_answers(sections["false_answers"]) if "false_answers" in sections else None,
        latency_ms=tuple(_latency(sections.get("latency_ms", {}))),
        failed_queries=0 if failed is None else _whole(failed, "coverage.failed_queries", least=0),
        runs_may_fail=_yes(sections.get("runs_may_fail", "false"), "runs_may_fail"),
        alpha=_number(sections["alpha"], "alpha", least=0.0001, most=0.5) if "alpha" in sections else 0.05,
    )
    if not rules.measures and rules.false_answers is None and not rules.latency_ms and failed is None:
        raise RulesError(f"it holds no rule. State at least one of {', '.join(RULES)}.")
    return rules


def _floors(value: Any, where: str, *, only: tuple[str, ...] = ()) -> Iterator[Floor]:
    for text, limit in _mapping(value, where).items():
        measure = _measure(text, where)
        if only and measure.name not in only:
            raise RulesError(f"{where}.{text}: only {', '.join(only)}@k and failed_queries stand here.")
        yield _floor(measure, limit, f"{where}.{text}")


def _floor(measure: Measure, limit: Any, where: str) -> Floor:
    """Return the floor that a number states, or `{at_least: number, mean: NAME}`."""
    if not isinstance(limit, dict):
        return Floor(measure, _value(limit, where, measure))
    keys = _mapping(limit, where, ("at_least", "mean"))
    name = keys.get("mean", Mean.BENCHMARK)
    if name not in list(Mean):
        raise RulesError(f"{where}.mean: {_shown(name)} is no mean; there are {', '.join(Mean)}.")
    return Floor(measure, _value(keys.get("at_least"), f"{where}.at_least", measure), mean=Mean(name))


def _slice_floors(value: Any) -> Iterator[Floor]:
    for name, floors in _mapping(value, "slices").items():
        where = f"slices.{name}"
        by_slice = _mapping(floors, where)
        minimum = _whole(by_slice.pop("minimum_queries", str(MINIMUM)), f"{where}.minimum_queries", least=1)
        if not by_slice:
            raise RulesError(f"{where}: it states no measure.")
        for floor in _floors(by_slice, where):
            yield replace(floor, slice=name, minimum_queries=minimum)


def _changes(value: Any) -> Iterator[Change]:
    for text, limits in _mapping(value, "against_baseline").items():
        where = f"against_baseline.{text}"
        keys = _mapping(limits, where, ("may_lose", "must_gain"))
        if len(keys) != 1:
            raise RulesError(f"{where}: state either may_lose or must_gain.")
        [(kind, limit)] = keys.items()
        measure = _measure(text, where)
        yield Change(measure, **{kind: _value(limit, f"{where}.{kind}", measure)})


def _must_not_fail(value: Any) -> Iterator[MustNotFail]:
    if not isinstance(value, list):
        raise RulesError(f"must_not_fail: this is {_kind(value)}; it must be a list, each item with a leading dash.")
    for place, item in enumerate(value, start=1):
        where = f"must_not_fail, item {place}"
        rule = _mapping(item, where, ("queries", "measure", "at_least", "relevant_in_top"))
        queries = rule.get("queries")
        if not isinstance(queries, list) or not queries or not all(isinstance(key, str) for key in queries):
            raise RulesError(f"{where}: queries must be a list of query keys, such as [q1, q2].")
        keys = tuple(dict.fromkeys(queries))
        if set(rule) == {"queries", "relevant_in_top"}:
            k = _whole(rule["relevant_in_top"], f"{where}, relevant_in_top", least=1)
            yield MustNotFail(keys, Measure("Success", k), 1.0)
        elif set(rule) == {"queries", "measure", "at_least"}:
            measure = _measure(rule["measure"], where)
            yield MustNotFail(keys, measure, _value(rule["at_least"], f"{where}, at_least", measure))
        else:
            raise RulesError(f"{where}: beside queries, state either relevant_in_top, or measure and at_least.")


def _false_answers(value: Any) -> float:
    keys = _mapping(value, "false_answers", ("at_most",))
    return _number(keys.get("at_most"), "false_answers.at_most", most=1)


def _latency(value: Any) -> Iterator[tuple[str, float]]:
    for name, limit in _mapping(value, "latency_ms", STATISTICS).items():
        yield name, _number(limit, f"latency_ms.{name}")


def _mapping(value: Any, where: str = "", known: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a copy of a mapping whose keys are `known`, where that is given. The whole file has no `where`."""
    at = where and f"{where}: "
    if not isinstance(value, dict):
        raise RulesError(f"{at}this is {_kind(value)}; it must be a mapping, `key: value`.")
    for key in value:
        if known and key not in known:
            raise RulesError(f"{at}there is no key {key!r}; there are {', '.join(known)}.")
    return dict(value)


def _measure(text: Any, where: str) -> Measure:
    """Return the measure of a name of ours or of the wire: `R@5`, `recall@5` and `Recall@5` are the same.

    A rank is none that a gate can hold: it falls as a run improves, and a query without one has no value.
    """
    if not isinstance(text, str):
        raise RulesError(f"{where}: this is {_kind(text)}; it must be the name of a measure.")
    name, at, cutoff = text.partition("@")
    measure = Measure.parse(NAMES.get(name.lower(), name) + at + cutoff)
    if definition_of(measure).better == "lower":
        raise RulesError(f"{where}: no rule can be on {measure}, which falls as a run improves. Take RR, of a rank.")
    return measure


def _value(value: Any, where: str, measure: Measure) -> float:
    return _number(value, where, most=definition_of(measure).greatest)


def _number(value: Any, where: str, *, least: float = 0.0, most: float = math.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RulesError(f"{where}: {_shown(value)} is not a number.") from None
    if not (least <= number <= most and math.isfinite(number)):
        limits = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
        raise RulesError(f"{where}: {_shown(value)} is out of range; it must be a number {limits}.")
    return number


def _whole(value: Any, where: str, *, least: int) -> int:
    if not isinstance(value, str) or not value.isdecimal() or int(value) < least:
        raise RulesError(f"{where}: {_shown(value)} is not a whole number of at least {least}.")
    return int(value)


def _yes(value: Any, where: str) -> bool:
    if value not in ("true", "false"):
        raise RulesError(f"{where}: {_shown(value)} is neither true nor false.")
    return bool(value == "true")


def _shown(value: Any) -> str:
    return repr(value[:40]) if isinstance(value, str) and value else _kind(value)


def _kind(value: Any) -> str:
    if value is None or value == "":
        return "empty"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"the text {str(value)[:40]!r}"
