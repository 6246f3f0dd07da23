"""Judges and owners of a round: who may grade in it, who leads it, and changes of it while it is open."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from apps.judging.models import Round, Slot
from benchbench.access import colleagues_of
from benchbench.database.failures import read_again
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError

EVERY = "judging.view_all_round"
# Closing and changing a round lock it FOR UPDATE, which waits for this lock and makes it wait. Judges share it, and
# renewing the state, which writes `answered_at`, is not kept waiting by it. Django cannot ask for this lock.
HOLD = f"SELECT state FROM {Round._meta.db_table} WHERE id = %s FOR KEY SHARE"  # nosec # of constants


class RoundError(BenchbenchError):
    """A value of a round, or of a grade, is invalid."""

    code = "invalid_round"


class RoundStateError(ConflictError):
    """The round is in a state that forbids the act."""

    code = "round_state"


class NotAJudgeError(ConflictError):
    """The user sees the round, and is not among those who do this in it, whom its owner names."""

    code = "not_a_judge"


def is_judge(round: Round, user: Any) -> bool:
    """Tell whether the round names the user as a judge."""
    return user.pk in round.judge_ids


def nameable(user: Any, round: Round | None = None) -> QuerySet[User]:
    """Return whom a user may name as judges: colleagues, and those whom the round names already."""
    colleagues = colleagues_of(user)
    if round is None:
        return colleagues
    return User.objects.filter(Q(pk__in=colleagues.values("pk")) | Q(judging_rounds=round)).distinct()


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


@transaction.atomic
def change_round(
    round: Round,
    by: Any,
    *,
    goes_on: bool | None = None,
    judges: Sequence[User] | None = None,
    guidelines: str | None = None,
) -> Round:
    """Change what is stated of an open round; what is None stays. Return the round.

    What a judge graded who is not named any more stays; what they hold goes to others. Raises RoundStateError,
    NotAJudgeError, RoundError.
    """
    require_lead(round, by)
    round = read_again(Round.objects.select_for_update(of=("self",)), round.pk)
    require_open(round)
    round.goes_on = round.goes_on if goes_on is None else goes_on
    round.guidelines = round.guidelines if guidelines is None else guidelines
    round.save(update_fields=["goes_on", "guidelines", "updated_at"])
    if judges is not None:
        require_judges(judges, overlap_judges=round.overlap_judges if round.overlap else 1)
        round.judges.set(judges)
        Slot.objects.filter(round=round, done=False).exclude(judge__in=judges).update(judge=None, until=None)
    return round


def require_judges(judges: Sequence[User], *, overlap_judges: int) -> None:
    """Raise RoundError unless there are judges, who may all sign in, and as many as an item wants."""
    if not judges:
        raise RoundError("A round needs judges: name at least one.", field="judges")
    for judge in judges:
        if not (judge.is_active and judge.is_staff):
            raise RoundError(f"{judge} may not sign in here: a judge is an active member of the staff.", field="judges")
    named = len(set(judges))
    if named < overlap_judges:
        raise RoundError(
            f"The overlap asks for {overlap_judges} judges of an item, and there is {counted(named, 'judge')}: name "
            "more, or set the overlap to 0.",
            field="overlap",
        )


def find_judges(names: Sequence[str], among: QuerySet[User] | None = None) -> list[User]:
    """Return the users of these names. Raises RoundError, which names the first that there is not `among` them."""
    known = User.objects.all() if among is None else among
    users = {user.username: user for user in known.filter(username__in=names)}
    whom = "No user" if among is None else "Nobody in your teams"
    for name in names:
        if name not in users:
            raise RoundError(f"{whom} is called {name!r}: a judge is named by the user name.", field="judges")
    return [users[name] for name in dict.fromkeys(names)]
