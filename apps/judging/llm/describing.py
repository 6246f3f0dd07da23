"""Judging by a model, for the API and commands."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from django.db.models import Count, Q

from apps.judging.errors import RoundError
from apps.judging.llm.calibrating import Calibrated, calibration_of
from apps.judging.llm.launching import items_left
from apps.judging.llm.verdicts import Policy, PolicyVerdict, Verdicts
from apps.judging.models import Grade, LLMJudge, Round
from apps.operations.models import Operation
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import Calibration, OrderEffect
from benchbench.ir.statistics.resampling import Interval
from benchbench.reading.records import attributes


def judges_of(round: Round) -> list[LLMJudge]:
    """Return the models that judge a round, the one that was started last first."""
    return list(round.llm_judges.select_related("round__mapping", "round__dataset_version"))


def find_llm_judge(round: Round, llm: str = "") -> LLMJudge | None:
    """Return what `llm` judged as last; without a name the model that was started last, None where none was.

    Raises RoundError for a model that judged nothing here.
    """
    judges = [judge for judge in judges_of(round) if not llm or judge.llm == llm]
    if llm and not judges:
        raise RoundError(f'{llm} has judged nothing in the round "{round}": start it first.', field="llm")
    return next(iter(judges), None)


@dataclass(frozen=True)
class BiasReport:
    """The model's grades of the pairs to which people gave a grade: their mean less it."""

    grade: int
    items: int
    mean: float | None
    mean_low: Annotated[float | None, "95 %; null below 30 items."]
    mean_high: float | None


@dataclass(frozen=True)
class CalibrationFigures:
    """The model's grades against people's, on the calibration sample."""

    alpha: Annotated[float | None, "Krippendorff's, ordinal; null: nothing could differ."]
    alpha_low: float | None
    alpha_high: float | None
    bias: list[BiasReport]
    overall_bias: float | None
    overall_bias_low: float | None
    overall_bias_high: float | None
    kappa: float | None
    scale: list[int]
    counts: Annotated[list[list[int]], "Rows are people's grades."]
    tau: Annotated[float | None, "Kendall's τ-b between the runs' orders; null: all equal."]
    values: Annotated[float | None, "Mean absolute difference of a run's value of a query."]
    rise: Annotated[float | None, "Mean difference, model less people."]
    queries: Annotated[int, "With a pair of the sample."]


@dataclass(frozen=True)
class CalibrationReport:
    """Calibration of a model, or why there is none: then no figure is shown under its name."""

    size: Annotated[int, "Pairs of the round's sample; 0: none is drawn."]
    waiting: Annotated[int, "Pairs that wait for people, or for one before them."]
    used: Annotated[int, "Pairs that both graded."]
    cant_tell_people: int
    cant_tell_model: int
    is_stale: Annotated[bool, "Model, prompt, scale or guidelines changed."]
    why_not: Annotated[str | None, "Why there are no figures."]
    warnings: list[str]
    figures: CalibrationFigures | None


@dataclass(frozen=True)
class LLMJudgeReport:
    """A model that judges a round."""

    id: UUID
    name: Annotated[str, "Of its grades: server, model, revision, prompt."]
    llm: str
    revision: Annotated[str, "unknown where its server states none."]
    prompt_version: str
    most: Annotated[int | None, "Its cap, the last time that it was started."]
    graded: int
    cant_tell: Annotated[int, "Its answer was no grade of the scale."]
    left: int
    sentence: str
    calibration: CalibrationReport


@dataclass(frozen=True)
class MixedPair:
    """Two runs under a policy; the difference is first − second."""

    first_run_id: UUID
    second_run_id: UUID
    difference: float
    low: Annotated[float, "95 %, of this pair alone."]
    high: float
    simultaneous_low: Annotated[float | None, "95 %, of all pairs at once."]
    simultaneous_high: float | None
    p_adjusted: Annotated[float, "Within the family of all pairs."]
    significant: bool


@dataclass(frozen=True)
class PolicyReport:
    """The verdict under one policy, or why there is none."""

    policy: Policy
    meaning: str
    sentence: str
    why_not: str | None
    best_run_ids: Annotated[list[UUID], "The best, and what equals it."]
    queries: Annotated[int, "That every run answered."]
    judged: Annotated[int, "Pairs of the pool with a person's grade that counts."]
    by_model: Annotated[int, "With the model's."]
    holes: Annotated[int, "With none: not relevant."]
    sampled: Annotated[int, "Of `corrected`: queries that people judged whole."]
    gain: Annotated[float | None, "By how many queries the model enlarges that sample."]
    estimand: Annotated[str | None, "What the differences are."]
    pairs: list[MixedPair]


@dataclass(frozen=True)
class VerdictsReport:
    """Verdicts of a round's runs under the three policies. What evaluations store is people's alone."""

    judge: str | None
    measure: str
    warnings: list[str]
    verdicts: list[PolicyReport]


def judge_report(judge: LLMJudge) -> LLMJudgeReport:
    """Return a model as a judge with its calibration."""
    kinds = {"graded": Grade.Kind.GRADE, "cant_tell": Grade.Kind.CANT_TELL}
    rows = Grade.objects.filter(item__round=judge.round_id, source=Grade.Source.LLM, judge_name=judge.name)
    counts = rows.aggregate(**{name: Count("pk", filter=Q(kind=kind)) for name, kind in kinds.items()})
    left = items_left(judge.round, judge.name).count()
    return LLMJudgeReport(
        **attributes(judge, "id", "name", "llm", "revision", "prompt_version", "most"),
        **counts,
        left=left,
        sentence=_sentence(judge, counts, left),
        calibration=_calibration(calibration_of(judge)),
    )


def _calibration(found: Calibrated) -> CalibrationReport:
    return CalibrationReport(
        size=found.sample.size,
        waiting=found.sample.waiting,
        used=found.used,
        cant_tell_people=found.unsure_people,
        cant_tell_model=found.unsure_model,
        is_stale=found.is_stale,
        why_not=found.why_not or None,
        warnings=found.warnings,
        figures=None if found.figures is None else _figures(found.figures, found.effect),
    )


def verdicts_report(verdicts: Verdicts) -> VerdictsReport:
    """Return the verdicts of a round."""
    runs = [run.pk for run in verdicts.runs]
    return VerdictsReport(
        judge=verdicts.calibrated.judge.name if verdicts.calibrated else None,
        measure=verdicts.measure,
        warnings=verdicts.calibrated.warnings if verdicts.calibrated else [],
        verdicts=[_verdict(verdicts, verdict, runs) for verdict in verdicts.of],
    )


def _sentence(judge: LLMJudge, counts: dict[str, int], left: int) -> str:
    done = counts["graded"] + counts["cant_tell"]
    sentence = f"It judged {done:,} of {counted(done + left, 'item')}"
    if counts["cant_tell"]:
        sentence += f", {counts['cant_tell']:,} of which it could not tell"
    capped = judge.most is not None and left and not _is_at_work(judge)
    return f"{sentence}; its cap was {counted(judge.most or 0, 'answer')} the last time." if capped else f"{sentence}."


def _is_at_work(judge: LLMJudge) -> bool:
    return Operation.active_on(judge.round) is not None


def _figures(figures: Calibration, effect: OrderEffect | None) -> CalibrationFigures:
    return CalibrationFigures(
        alpha=figures.alpha.value,
        **_ends("alpha", figures.alpha.interval),
        bias=[
            BiasReport(int(bias.grade), bias.items, bias.mean, **_ends("mean", bias.interval)) for bias in figures.bias
        ],
        overall_bias=figures.overall.mean,
        **_ends("overall_bias", figures.overall.interval),
        kappa=figures.confusion.kappa,
        scale=[int(grade) for grade in figures.confusion.scale],
        counts=figures.confusion.counts.tolist(),
        tau=effect.tau if effect else None,
        values=effect.values if effect else None,
        rise=effect.rise if effect else None,
        queries=effect.queries if effect else 0,
    )


def _verdict(verdicts: Verdicts, verdict: PolicyVerdict, runs: list[UUID]) -> PolicyReport:
    return PolicyReport(
        **attributes(verdict, "policy", "meaning", "queries", "judged", "by_model", "holes", "sampled", "gain"),
        sentence=verdicts.sentence(verdict),
        why_not=verdict.why_not or None,
        best_run_ids=[runs[place] for place in verdict.group],
        estimand=verdict.estimand or None,
        pairs=[
            MixedPair(
                first_run_id=runs[pair.first],
                second_run_id=runs[pair.second],
                difference=pair.difference,
                low=pair.interval.low,
                high=pair.interval.high,
                **_ends("simultaneous", pair.simultaneous),
                p_adjusted=pair.p_adjusted,
                significant=pair.significant,
            )
            for pair in verdict.pairs
        ],
    )


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}
