"""Reading the rules of a gate from YAML. The format is described in docs/gates.md."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field

from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure, MeasureError
from benchbench.ir.measures.spelling import MAX_CUTOFF
from benchbench.ir.profiles import Mean
from benchbench.ir.rules import Change, Floor, MustNotFail, Rules
from benchbench.ir.slices import MINIMUM
from benchbench.reading import strict_yaml
from benchbench.reading.kinds import Kind, int_between, one_of
from benchbench.reading.objects import Identifier, InvalidKeyError, Listed, StrictRecord, read_as, refuse
from benchbench.reading.strict_json import MalformedFileError, dump_canonical
from benchbench.reading.strict_yaml import MAX_CHARACTERS

RULES = ("floors", "slices", "against_baseline", "must_not_fail", "false_answers", "latency_ms", "coverage")


class RulesError(BenchbenchError):
    """The rules are invalid. The message names the key."""

    code = "gate_rules"


NUMBER = Kind(Annotated[float, Field(ge=0)], "a number from 0 up")
COUNT = Kind(Annotated[int, Field(ge=0)], "a whole number from 0 up")
STATISTIC = one_of("mean", "p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class _Limit(StrictRecord):
    at_least: Annotated[float, NUMBER]
    mean: Annotated[str, one_of(*Mean)] = Mean.BENCHMARK

    @classmethod
    def parse_object(cls, value: object, allowed_keys: Mapping[str, object]) -> Any:
        """Read a bare number as the limit on the benchmark mean."""
        return super(_Limit, cls).parse_object(value if isinstance(value, dict) else {"at_least": value}, allowed_keys)


Limits = dict[str, _Limit]  # by the name of a measure


class _Slice(BaseModel, extra="allow", strict=True, allow_inf_nan=False):
    minimum_queries: Annotated[int, int_between(1, 10**9)] = MINIMUM
    __pydantic_extra__: Limits


class _Coverage(BaseModel, extra="allow", strict=True, allow_inf_nan=False):
    failed_queries: Annotated[int | None, COUNT.or_null] = None
    __pydantic_extra__: Limits


@dataclass(frozen=True, slots=True)
class _Change(StrictRecord):
    may_lose: Annotated[float | None, NUMBER] = None
    must_gain: Annotated[float | None, NUMBER] = None
    unless_significant: bool = False


@dataclass(frozen=True, slots=True)
class _MustNotFail(StrictRecord):
    queries: Listed[Identifier]
    measure: str | None = None
    at_least: Annotated[float | None, NUMBER] = None
    relevant_in_top: Annotated[int | None, int_between(1, MAX_CUTOFF)] = None


@dataclass(frozen=True, slots=True)
class _FalseAnswers(StrictRecord):
    at_most: Annotated[float, Kind(Annotated[float, Field(ge=0, le=1)])]


@dataclass(frozen=True, slots=True)
class _Rules(StrictRecord):
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


def read_rules(rules: str | Mapping[str, object], *, location: str = "gate.yaml") -> Rules:
    """Read rules from a YAML text or a JSON object; `location` names the file in errors.

    Unless the rules allow a number of failed queries, it is 0, because means leave failed queries out. Raises
    RulesError, which names the key, for unknown or repeated keys, values of the wrong type or out of range, and a text
    without rules.
    """
    try:
        if not isinstance(rules, str) and (size := len(dump_canonical(rules))) > MAX_CHARACTERS:
            refuse(location, f"has {size:,} characters; rules have at most {MAX_CHARACTERS:,}")
        document = strict_yaml.parse(rules, location=location) if isinstance(rules, str) else rules
        return _build_rules(read_as(_Rules, document or {}, prefix=f"{location}, "), f"{location}, ")
    except (InvalidKeyError, MalformedFileError) as error:
        raise RulesError(error.message, field="rules") from None


def _build_rules(parsed: _Rules, location: str) -> Rules:
    """Convert the rules of a file; `location` is the prefix of keys in errors."""
    coverage = parsed.coverage.__pydantic_extra__ if parsed.coverage else {}
    failed = parsed.coverage.failed_queries if parsed.coverage else None
    rules = Rules(
        floors=(
            *_build_floors(parsed.floors, f"{location}floors"),
            *_build_slice_floors(parsed.slices, f"{location}slices"),
            *_build_floors(coverage, f"{location}coverage"),
        ),
        changes=tuple(_build_changes(parsed.against_baseline, f"{location}against_baseline")),
        must_not_fail=tuple(
            _build_must_not_fail(rule, f"{location}must_not_fail[{index}]")
            for index, rule in enumerate(parsed.must_not_fail)
        ),
        false_answers=None if parsed.false_answers is None else parsed.false_answers.at_most,
        latency_ms=tuple(parsed.latency_ms.items()),
        failed_queries=failed or 0,
        runs_may_fail=parsed.runs_may_fail,
        alpha=parsed.alpha,
    )
    for name in coverage:
        if _parse_measure(name, location).name != "Judged":
            refuse(f"{location}coverage.{name}", "is not allowed here: use Judged@k or failed_queries")
    if not (rules.measures or parsed.false_answers or rules.latency_ms or failed is not None):
        refuse(location.rstrip(", "), f"has no rule: give at least one of {', '.join(RULES)}")
    return rules


def _build_floors(limits: Limits, location: str) -> Iterator[Floor]:
    for name, limit in limits.items():
        measure = _parse_measure(name, location)
        yield Floor(measure, _check_limit(limit.at_least, measure, f"{location}.{name}"), mean=Mean(limit.mean))


def _build_slice_floors(slices: Mapping[str, _Slice], location: str) -> Iterator[Floor]:
    for name, slice_rules in slices.items():
        if not slice_rules.__pydantic_extra__:
            refuse(f"{location}.{name}", "must have at least one measure")
        for floor in _build_floors(slice_rules.__pydantic_extra__, f"{location}.{name}"):
            yield replace(floor, slice=name, minimum_queries=slice_rules.minimum_queries)


def _build_changes(changes: Mapping[str, _Change], location: str) -> Iterator[Change]:
    for name, change in changes.items():
        key, measure = f"{location}.{name}", _parse_measure(name, location)
        if (change.may_lose is None) == (change.must_gain is None):
            refuse(key, "must have either may_lose or must_gain")
        if change.unless_significant and change.may_lose is None:
            refuse(f"{key}.unless_significant", "belongs to may_lose: a gain is always to be significant")
        for limit in (change.may_lose, change.must_gain):
            _check_limit(limit or 0, measure, key)
        yield Change(measure, change.may_lose, change.must_gain, change.unless_significant)


def _build_must_not_fail(rule: _MustNotFail, location: str) -> MustNotFail:
    queries = tuple(dict.fromkeys(rule.queries))
    if not queries:
        refuse(f"{location}.queries", "is empty: give a query key")
    if rule.relevant_in_top is not None and rule.measure is None and rule.at_least is None:
        return MustNotFail(queries, Measure("Success", rule.relevant_in_top), 1.0)
    if rule.measure is None or rule.at_least is None or rule.relevant_in_top is not None:
        refuse(location, "must have, in addition to queries, either relevant_in_top, or measure and at_least")
    measure = _parse_measure(rule.measure, location)
    return MustNotFail(queries, measure, _check_limit(rule.at_least, measure, f"{location}.at_least"))


def _parse_measure(text: str, location: str) -> Measure:
    """Return the measure that `text` names; refuse one that falls as a run improves, such as a rank."""
    try:
        measure = Measure.read(text)
    except MeasureError as error:
        raise RulesError(f"{location}.{text[:40]}: {error.message}", field="rules") from None
    if measure.definition.better == "lower":
        refuse(f"{location}.{text}", f"cannot be a rule: {measure} falls as a run improves. Use RR instead")
    return measure


def _check_limit(limit: float, measure: Measure, location: str) -> float:
    """Return `limit`; refuse one that the measure cannot reach."""
    if limit > (maximum := measure.definition.greatest):
        refuse(location, f"must be a number from 0 to {maximum:g}, not {limit:g}")
    return limit
