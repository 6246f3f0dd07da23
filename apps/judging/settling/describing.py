"""State and agreement of a round as plain objects, for the API and commands."""

from typing import Any

from apps.judging.settling.agreeing import Agreement, PairAgreement
from apps.judging.settling.summing import Summary
from benchbench.ir.judging.state import State
from benchbench.reading.strict_json import attributes


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
                **attributes(judge, "graded", "skipped", "cant_tell"),
                "seconds_each": judge.pace,
                "seconds_left": judge.left,
                "last_at": judge.last,
            }
            for judge in summary.progress.judges
        ],
        **attributes(round, "is_open", "hands_out", "answered_at"),
        "sentence": summary.sentence,
        "grades": known.said.count,
        "counted_grades": known.counted,
        **attributes(known, "is_current", "renewed_at", "sample_size", "inclusion_probability"),
        "question": None if summary.state is None else _question(summary.state, [str(run.pk) for run in summary.runs]),
    }


def _question(state: State, runs: list[str]) -> dict[str, Any]:
    return {
        **attributes(state, "settled", "certain", "probability", "judged", "holes", "queries", "reason"),
        "best_run_ids": [runs[row] for row in state.verdict],
        "winner_run_id": None if state.winner is None else runs[state.winner],
        "more": state.more.middle,
        "more_at_most": state.more.most,
        "pairs": [
            {
                "first_run_id": runs[pair.first],
                "second_run_id": runs[pair.second],
                **attributes(pair, "least", "greatest", "certain", "difference", "spread"),
                **attributes(pair, "outcome", "probability", "settled"),
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
