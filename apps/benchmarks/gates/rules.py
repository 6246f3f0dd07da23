"""Reading the rules of a gate from YAML. The format is described in docs/gates.md."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field

from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Change, Floor, MustNotFail, Rules
from benchbench.ir.measures import DEFINITIONS, Measure, MeasureError
from benchbench.ir.profiles import Mean
from benchbench.ir.slices import MINIMUM
from benchbench.reading import strict_yaml
from benchbench.reading.kinds import Kind, one_of, whole
from benchbench.reading.objects import Identifier, InvalidKeyError, Listed, Stated, read_as, refuse
from benchbench.reading.strict_json import MalformedFileError, canonical
from benchbench.reading.strict_yaml import MAX_CHARACTERS

RULES = ("floors", "slices", "against_baseline", "must_not_fail", "false_answers", "latency_ms", "coverage")
NAMES = {name.lower(): name for name in DEFINITIONS} | {
    "precision": "P",
    "recall": "R",
    "map": "AP",
    "mrr": "RR",
}


class RulesError(BenchbenchError):
    """The rules are invalid. The message names the key."""

    code = "gate_rules"


NUMBER = Kind(Annotated[float, Field(ge=0)], "a number from 0 up")
COUNT = Kind(Annotated[int, Field(ge=0)], "a whole number from 0 up")
STATISTIC = one_of("mean", "p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class _Limit(Stated):
    at_least: Annotated[float, NUMBER]
    mean: Annotated[str, one_of(*Mean)] = Mean.BENCHMARK

    @classmethod
    def as_object(cls, value: Any, known: Mapping[str, Any]) -> Any:
        """Read a bare number as the limit on the benchmark mean."""
        return super(_Limit, cls).as_object(value if isinstance(value, dict) else {"at_least": value}, known)


Limits = dict[str, _Limit]  # by the name of a measure


class _Slice(BaseModel, extra="allow", strict=True, allow_inf_nan=False):
    minimum_queries: Annotated[int, whole(1, 10**9)] = MINIMUM
    __pydantic_extra__: Limits


class _Coverage(BaseModel, extra="allow", strict=True, allow_inf_nan=False):
    failed_queries: Annotated[int | None, COUNT.or_null] = None
    __pydantic_extra__: Limits


@dataclass(frozen=True, slots=True)
class _Change(Stated):
    may_lose: Annotated[float | None, NUMBER] = None
    must_gain: Annotated[float | None, NUMBER] = None


@dataclass(frozen=True, slots=True)
class _MustNotFail(Stated):
    queries: Listed[Identifier]
    measure: str | None = None
    at_least: Annotated[float | None, NUMBER] = None
    relevant_in_top: Annotated[int | None, whole(1, 10**9)] = None


@dataclass(frozen=True, slots=True)
class _FalseAnswers(Stated):
    at_most: Annotated[float, Kind(Annotated[float, Field(ge=0, le=1)])]


@dataclass(frozen=True, slots=True)
class _Rules(Stated):
    """The rules as in the file: measures by name, limits not yet compared with the range of the measure."""

    floors: Limits = field(default_factory=dict)
    slices: dict[str, _Slice] = field(default_factory=dict)
    against_baseline: dict[str, _Change] = field(default_factory=dict)
    must_not_fail: Listed[_MustNotFail] = ()
    false_answers: _FalseAnswers | None = None
    latency_ms: dict[Annotated[str, STATISTIC], Annotated[float, NUMBER]] = field(default_factory=dict)
    coverage: _Coverage | None = None
    runs_may_fail: bool = False
    alpha: Annotated[float, Kind(Annotated[float, Field(ge=0.0001, le=0.5)])] = 0.05


def read_rules(rules: str | dict[str, Any], *, where: str = "gate.yaml") -> Rules:
    """Read rules from a YAML text or a JSON object; `where` names the file in errors.

    Unless the rules allow a number of failed queries, it is 0, because means leave failed queries out. Raises
    RulesError, which names the key, for unknown or repeated keys, values of the wrong type or out of range, and a text
    without rules.
    """
    try:
        if not isinstance(rules, str) and (size := len(canonical(rules))) > MAX_CHARACTERS:
            refuse(where, f"has {size:,} characters; rules have at most {MAX_CHARACTERS:,}")
        document = strict_yaml.parse(rules, where=where) if isinstance(rules, str) else rules
        return _rules(read_as(_Rules, document or {}, prefix=f"{where}, "), f"{where}, ")
    except (InvalidKeyError, MalformedFileError) as error:
        raise RulesError(error.message, field="rules") from None


def _rules(stated: _Rules, where: str) -> Rules:
    """Convert the rules of a file; `where` is the prefix of keys in errors."""
    coverage = stated.coverage.__pydantic_extra__ if stated.coverage else {}
    failed = stated.coverage.failed_queries if stated.coverage else None
    rules = Rules(
        floors=(
            *_floors(stated.floors, f"{where}floors"),
            *_slice_floors(stated.slices, f"{where}slices"),
            *_floors(coverage, f"{where}coverage"),
        ),
        changes=tuple(_changes(stated.against_baseline, f"{where}against_baseline")),
        must_not_fail=tuple(
            _must_not_fail(rule, f"{where}must_not_fail[{index}]") for index, rule in enumerate(stated.must_not_fail)
        ),
        false_answers=None if stated.false_answers is None else stated.false_answers.at_most,
        latency_ms=tuple(stated.latency_ms.items()),
        failed_queries=failed or 0,
        runs_may_fail=stated.runs_may_fail,
        alpha=stated.alpha,
    )
    for name in coverage:
        if _measure(name, where).name != "Judged":
            refuse(f"{where}coverage.{name}", "is out of place: only Judged@k and failed_queries belong here")
    if not (rules.measures or stated.false_answers or rules.latency_ms or failed is not None):
        refuse(where.rstrip(", "), f"holds no rule: state at least one of {', '.join(RULES)}")
    return rules


def _floors(limits: Limits, where: str) -> Iterator[Floor]:
    for name, limit in limits.items():
        measure = _measure(name, where)
        yield Floor(measure, _reachable(limit.at_least, measure, f"{where}.{name}"), mean=Mean(limit.mean))


def _slice_floors(slices: Mapping[str, _Slice], where: str) -> Iterator[Floor]:
    for name, of_slice in slices.items():
        if not of_slice.__pydantic_extra__:
            refuse(f"{where}.{name}", "states no measure")
        for floor in _floors(of_slice.__pydantic_extra__, f"{where}.{name}"):
            yield replace(floor, slice=name, minimum_queries=of_slice.minimum_queries)


def _changes(changes: Mapping[str, _Change], where: str) -> Iterator[Change]:
    for name, change in changes.items():
        place, measure = f"{where}.{name}", _measure(name, where)
        if (change.may_lose is None) == (change.must_gain is None):
            refuse(place, "must state either may_lose or must_gain")
        for limit in (change.may_lose, change.must_gain):
            _reachable(limit or 0, measure, place)
        yield Change(measure, change.may_lose, change.must_gain)


def _must_not_fail(rule: _MustNotFail, where: str) -> MustNotFail:
    queries = tuple(dict.fromkeys(rule.queries))
    if not queries:
        refuse(f"{where}.queries", "is empty: name a query")
    if rule.relevant_in_top is not None and rule.measure is None and rule.at_least is None:
        return MustNotFail(queries, Measure("Success", rule.relevant_in_top), 1.0)
    if rule.measure is None or rule.at_least is None or rule.relevant_in_top is not None:
        refuse(where, "must state besides queries either relevant_in_top, or measure and at_least")
    measure = _measure(rule.measure, where)
    return MustNotFail(queries, measure, _reachable(rule.at_least, measure, f"{where}.at_least"))


def _measure(text: str, where: str) -> Measure:
    """Return the measure of one of our names or a wire name: `R@5`, `recall@5` and `Recall@5` are the same.

    Refuses measures that fall as a run improves, such as a rank.
    """
    name, at, cutoff = text.partition("@")
    try:
        measure = Measure.parse(NAMES.get(name.lower(), name) + at + cutoff)
    except MeasureError as error:
        raise RulesError(f"{where}.{text[:40]}: {error.message}", field="rules") from None
    if measure.definition.better == "lower":
        refuse(f"{where}.{text}", f"cannot be a rule: {measure} falls as a run improves. Take RR, of a rank")
    return measure


def _reachable(limit: float, measure: Measure, place: str) -> float:
    """Return `limit`; refuse one that the measure cannot reach."""
    if limit > (greatest := measure.definition.greatest):
        refuse(place, f"must be a number from 0 to {greatest:g}, not {limit:g}")
    return limit
