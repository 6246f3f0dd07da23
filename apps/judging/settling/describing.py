"""State and agreement of a round as plain objects, for the API and commands."""

from typing import Any

from apps.judging.settling.agreeing import Agreement, PairAgreement
from apps.judging.settling.summing import Summary
from benchbench.ir.judging.state import State


def state_facts(summary: Summary) -> dict[str, Any]:
    """Return the state of a round by the keys of the API (`RoundState`)."""
    round, known = summary.round, summary.stated
    return {
        "done": summary.progress.done,
        "wanted": summary.progress.wanted,
        "waiting_for_adjudication": len(summary.split),
        "judges": [
            {
                "judge": judge.user.get_username(),
                "graded": judge.graded,
                "skipped": judge.skipped,
                "cant_tell": judge.cant_tell,
                "seconds_each": judge.pace,
                "seconds_left": judge.left,
                "last_at": judge.last,
            }
            for judge in summary.progress.judges
        ],
        "is_open": round.is_open,
        "hands_out": round.hands_out,
        "answered_at": round.answered_at,
        "sentence": summary.sentence,
        "grades": known.said.count,
        "counted_grades": known.counted,
        "is_current": known.is_current,
        "renewed_at": known.renewed_at,
        "sample_size": known.sample_size,
        "inclusion_probability": known.inclusion_probability,
        "question": None if summary.state is None else _question(summary.state, [str(run.pk) for run in summary.runs]),
    }


def _question(state: State, runs: list[str]) -> dict[str, Any]:
    return {
        "settled": state.settled,
        "certain": state.certain,
        "probability": state.probability,
        "best_run_ids": [runs[row] for row in state.verdict],
        "winner_run_id": None if state.winner is None else runs[state.winner],
        "judged": state.judged,
        "holes": state.holes,
        "queries": state.queries,
        "more": state.more.middle,
        "more_at_most": state.more.most,
        "reason": state.reason,
        "pairs": [
            {
                "first_run_id": runs[pair.first],
                "second_run_id": runs[pair.second],
                "least": pair.least,
                "greatest": pair.greatest,
                "certain": pair.certain,
                "difference": pair.difference,
                "spread": pair.spread,
                "outcome": pair.outcome,
                "probability": pair.probability,
                "settled": pair.settled,
            }
            for pair in state.pairs
        ],
    }


def agreement_facts(agreement: Agreement) -> dict[str, Any]:
    """Return the agreement of a round's judges by the keys of the API (`AgreementFacts`)."""
    alpha = agreement.alpha
    interval = alpha.interval if alpha else None
    return {
        "alpha": alpha.value if alpha else None,
        "alpha_low": interval.low if interval else None,
        "alpha_high": interval.high if interval else None,
        "shared": alpha.shared if alpha else 0,
        "shifts": [
            {"judge": judge, "mean": shift.mean, "items": shift.items}
            for judge, shift in zip(agreement.judges, agreement.shifts, strict=True)
        ],
        "pairs": [_pair(pair) for pair in agreement.pairs],
    }


def _pair(pair: PairAgreement) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "shared": pair.confusion.shared,
        "kappa": pair.confusion.kappa,
        "scale": [int(grade) for grade in pair.confusion.scale],
        "counts": pair.confusion.counts.tolist(),
        "items": pair.items,
    }
