"""Judges: who may grade in a round, and who may settle and close it."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet

from apps.judging.errors import NotAJudgeError, RoundStateError
from apps.judging.models import Round
from benchbench.access import colleagues_of

EVERY = "judging.view_all_round"
# Closing and changing a round lock it FOR UPDATE, which waits for this lock and makes it wait. Judges share it, and
# renewing the state, which writes `answered_at`, is not kept waiting by it. Django cannot ask for this lock.
HOLD = f"SELECT state FROM {Round._meta.db_table} WHERE id = %s FOR KEY SHARE"  # nosec # of constants


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


def hold_open(round: Round) -> None:
    """Keep an open round from being closed until the transaction ends; closing waits for that.

    Call it in the transaction that writes a grade, before any slot is locked: closing locks the round first, and then
    its slots. `round` may have been loaded long ago: where it was closed since, its state is read again. Raises
    RoundStateError for a round that is closed or was deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [round.pk])
        row = cursor.fetchone()
    if row is None:
        raise RoundStateError(f'The round "{round}" was deleted: it takes no grade.')
    if row[0] != Round.State.OPEN:
        round.refresh_from_db(fields=["state", "closed_at", "closed_by", "closed_version"])
    require_open(round)
