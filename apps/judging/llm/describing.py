"""Judging by a model as plain objects, for the API and commands."""

from typing import Any

from django.db.models import Count, Q

from apps.judging.errors import RoundError
from apps.judging.llm.calibrating import Calibrated, calibration_of
from apps.judging.llm.launching import items_left
from apps.judging.llm.verdicts import PolicyVerdict, Verdicts
from apps.judging.models import Grade, LLMJudge, Round
from apps.operations.models import Operation
from benchbench.decimals import counted
from benchbench.ir.judging.calibration import Bias, Calibration, OrderEffect
from benchbench.ir.statistics.resampling import Interval


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


def judge_facts(judge: LLMJudge) -> dict[str, Any]:
    """Return a model as a judge with its calibration, by the keys of the API (`LLMJudgeFacts`)."""
    kinds = {"graded": Grade.Kind.GRADE, "cant_tell": Grade.Kind.CANT_TELL}
    rows = Grade.objects.filter(item__round=judge.round_id, source=Grade.Source.LLM, judge_name=judge.name)
    counts = rows.aggregate(**{name: Count("pk", filter=Q(kind=kind)) for name, kind in kinds.items()})
    left = items_left(judge.round, judge.name).count()
    return {
        **{name: getattr(judge, name) for name in ("id", "name", "llm", "revision", "prompt_version", "most")},
        **counts,
        "left": left,
        "sentence": _sentence(judge, counts, left),
        "calibration": calibration_facts(calibration_of(judge)),
    }


def calibration_facts(told: Calibrated) -> dict[str, Any]:
    """Return a calibration by the keys of the API (`CalibrationFacts`)."""
    return {
        "size": told.sample.size,
        "waiting": told.sample.waiting,
        "used": told.used,
        "cant_tell_people": told.unsure_people,
        "cant_tell_model": told.unsure_model,
        "is_stale": told.is_stale,
        "why_not": told.why_not or None,
        "warnings": told.warnings,
        "figures": None if told.figures is None else _figures(told.figures, told.effect),
    }


def verdict_facts(told: Verdicts) -> dict[str, Any]:
    """Return the verdicts of a round by the keys of the API (`VerdictsFacts`)."""
    runs = [str(run.pk) for run in told.runs]
    return {
        "judge": told.calibrated.judge.name if told.calibrated else None,
        "measure": told.measure,
        "warnings": told.calibrated.warnings if told.calibrated else [],
        "verdicts": [_verdict(told, verdict, runs) for verdict in told.of],
    }


def _sentence(judge: LLMJudge, counts: dict[str, int], left: int) -> str:
    done = counts["graded"] + counts["cant_tell"]
    sentence = f"It judged {done:,} of {counted(done + left, 'item')}"
    if counts["cant_tell"]:
        sentence += f", {counts['cant_tell']:,} of which it could not tell"
    capped = judge.most is not None and left and not _is_at_work(judge)
    return f"{sentence}; its cap was {counted(judge.most or 0, 'answer')} the last time." if capped else f"{sentence}."


def _is_at_work(judge: LLMJudge) -> bool:
    return Operation.active_on(judge.round) is not None


def _figures(figures: Calibration, effect: OrderEffect | None) -> dict[str, Any]:
    return {
        "alpha": figures.alpha.value,
        **_ends("alpha", figures.alpha.interval),
        "bias": [_bias(bias) for bias in figures.bias],
        "overall_bias": figures.overall.mean,
        **_ends("overall_bias", figures.overall.interval),
        "kappa": figures.confusion.kappa,
        "scale": [int(grade) for grade in figures.confusion.scale],
        "counts": figures.confusion.counts.tolist(),
        "tau": effect.tau if effect else None,
        "values": effect.values if effect else None,
        "rise": effect.rise if effect else None,
        "queries": effect.queries if effect else 0,
    }


def _bias(bias: Bias) -> dict[str, Any]:
    return {"grade": int(bias.grade), "items": bias.items, "mean": bias.mean, **_ends("mean", bias.interval)}


def _verdict(told: Verdicts, verdict: PolicyVerdict, runs: list[str]) -> dict[str, Any]:
    return {
        "policy": verdict.policy,
        "meaning": verdict.meaning,
        "sentence": told.sentence(verdict),
        "why_not": verdict.why_not or None,
        "best_run_ids": [runs[place] for place in verdict.group],
        "queries": verdict.queries,
        "judged": verdict.judged,
        "by_model": verdict.by_model,
        "holes": verdict.holes,
        "sampled": verdict.sampled,
        "gain": verdict.gain,
        "estimand": verdict.estimand or None,
        "pairs": [
            {
                "first_run_id": runs[pair.first],
                "second_run_id": runs[pair.second],
                "difference": pair.difference,
                "low": pair.interval.low,
                "high": pair.interval.high,
                **_ends("simultaneous", pair.simultaneous),
                "p_adjusted": pair.p_adjusted,
                "significant": pair.significant,
            }
            for pair in verdict.pairs
        ],
    }


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}
