"""Judges: who may grade in a round, and who may settle and close it."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from apps.judging.errors import NotAJudgeError, RoundStateError
from apps.judging.models import Round
from benchbench.access import colleagues_of

EVERY = "judging.view_all_round"


def is_judge(round: Round, user: Any) -> bool:
    """Tell whether the round names the user as a judge."""
    return user.pk in round.judge_ids


def nameable(user: Any, round: Round | None = None) -> QuerySet[User]:
    """Return whom a user may name as judges: colleagues, and those whom the round names already."""
    colleagues = colleagues_of(user)
    return (
        colleagues
        if round is None
        else User.objects.filter(Q(pk__in=colleagues.values("pk")) | Q(judging_rounds=round)).distinct()
    )


def require_judge(round: Round, user: Any) -> None:
    """Raise NotAJudgeError unless the round names the user as a judge."""
    if not is_judge(round, user):
        raise NotAJudgeError(f'{user} is not a judge of the round "{round}": its owner names the judges.')


def led_rounds(user: Any) -> QuerySet[Round]:
    """Return the rounds that the user may adjudicate and close: as the owner or of its team, not as a judge alone."""
    rounds = Round.objects.all()
    return rounds if user.has_perm(EVERY) else rounds.filter(Round.led_by(user))


def may_lead(round: Round, user: Any) -> bool:
    """Tell whether a round is one of `led_rounds`."""
    return user.has_perm(EVERY) or led_rounds(user).filter(pk=round.pk).exists()


def sees_others(round: Round, user: Any) -> bool:
    """Tell whether the user may see the runs, what others said and what it says: not a judge of a blind, open round."""
    return may_lead(round, user) or not (round.blind and round.is_open)


def require_lead(round: Round, user: Any) -> None:
    """Raise NotAJudgeError unless the user leads the round."""
    if not may_lead(round, user):
        raise NotAJudgeError(f'Only the owner of the round "{round}", or of its team, adjudicates and closes it.')


def require_part(round: Round, user: Any) -> None:
    """Raise NotAJudgeError unless the user judges in the round, or leads it."""
    if not may_lead(round, user):
        require_judge(round, user)


def require_open(round: Round) -> None:
    """Raise RoundStateError for a round that is closed."""
    if not round.is_open:
        raise RoundStateError(
            f'The round "{round}" is closed: its grades are in {round.closed_version or "no version"}.'
        )
