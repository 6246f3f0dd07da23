"""Judges and owners of a round: who may grade in it and who leads it, and changing it while it is open."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from apps.datasets.models import Dataset
from apps.judging.models import Round, Slot
from benchbench.access import AnyUser, list_colleagues, permits
from benchbench.database.failures import read_again
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError, ConflictError

# Closing and changing a round lock it FOR UPDATE, which conflicts with this lock. Judges share it, and it does not
# delay the update of `settled_at` when the state is renewed. Django cannot ask for this lock.
LOCK_ROUND = f"SELECT state FROM {Round._meta.db_table} WHERE id = %s FOR KEY SHARE"  # nosec # of constants


class RoundError(BenchbenchError):
    """A value of a round, or of a grade, is invalid."""

    code = "invalid_round"


class RoundStateError(ConflictError):
    """The round is in a state that forbids the act."""

    code = "round_state"


class NotAJudgeError(ConflictError):
    """The user sees the round but is not one of the people who may do this; its owner names them."""

    code = "not_a_judge"


def is_judge(round: Round, user: AnyUser) -> bool:
    """Return whether the round names the user as a judge."""
    return user.pk in round.judge_ids


def list_eligible_judges(user: AnyUser, round: Round | None = None) -> QuerySet[User]:
    """Return the users that `user` may add as judges: colleagues, and those whom the round already names."""
    colleagues = list_colleagues(user)
    if round is None:
        return colleagues
    return User.objects.filter(Q(pk__in=colleagues.values("pk")) | Q(judging_rounds=round)).distinct()


def require_judge(round: Round, user: AnyUser) -> None:
    """Raise NotAJudgeError unless the round names the user as a judge."""
    if not is_judge(round, user):
        raise NotAJudgeError(f'{user} is not a judge of the round "{round}": its owner names the judges.')


def filter_led(user: AnyUser) -> Q:
    """Return the filter for rounds that the user adjudicates and closes, which shows runs and results.

    These are the user's, and with the right to change rounds those of teams and of no one, except blind and open ones
    in which the user judges.
    """
    mine = Q(owner=user)
    if not user.has_perm("judging.change_round"):
        return mine
    shared = Q() if user.has_perm("judging.view_all_round") else Round.shared_with(user)
    return mine | (shared & ~Q(blind=True, state=Round.State.OPEN, pk__in=Round.judged_by(user)))


def list_led_rounds(user: AnyUser) -> QuerySet[Round]:
    """Return the rounds that the user may adjudicate and close; judges alone may not."""
    return Round.objects.filter(filter_led(user))


def may_lead(round: Round, user: AnyUser) -> bool:
    """Return whether a round is one of `list_led_rounds`."""
    if round.owner_id == user.pk or not user.has_perm("judging.change_round"):
        return bool(round.owner_id == user.pk)
    if round.blind and round.is_open and is_judge(round, user):
        return False
    return user.has_perm("judging.view_all_round") or list_led_rounds(user).filter(pk=round.pk).exists()


def may_close(user: AnyUser) -> bool:
    """Return whether the user may make the versions of datasets that closing rounds makes, as freezing drafts does."""
    return permits(Dataset, user, "change")


def require_close(round: Round, user: AnyUser) -> None:
    """Raise NotAJudgeError unless the user leads the round and may make a version of its dataset."""
    require_lead(round, user)
    if not may_close(user):
        raise NotAJudgeError(
            f'Closing the round "{round}" makes a version of its dataset, and you may not change datasets: ask its '
            "owner or an editor."
        )


def can_see_others(round: Round, user: AnyUser) -> bool:
    """Return whether the user may see runs, results and other judges' grades; judges of a blind, open round may not."""
    return may_lead(round, user) or not (round.blind and round.is_open)


def require_lead(round: Round, user: AnyUser) -> None:
    """Raise NotAJudgeError unless the user leads the round."""
    if not may_lead(round, user):
        raise NotAJudgeError(
            f'Only the owner of the round "{round}", and users of its team who may change rounds, lead it; while it is '
            "open and blind, its judges do not."
        )


def require_part(round: Round, user: AnyUser) -> None:
    """Raise NotAJudgeError unless the user judges in the round or leads it."""
    if not may_lead(round, user):
        require_judge(round, user)


def require_open(round: Round) -> None:
    """Raise RoundStateError if the round is closed."""
    if not round.is_open:
        raise RoundStateError(
            f'The round "{round}" is closed: its grades are in {round.closed_version or "no version"}.'
        )


def lock_open_round(round: Round) -> None:
    """Keep an open round from being closed until the transaction ends; closing waits for it.

    Call it in the transaction that writes a grade, before locking any slot: closing locks the round first, then its
    slots. Reloads the state of `round` if it was closed since. Raises RoundStateError if the round is closed or
    deleted.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOCK_ROUND, [round.pk])
        row = cursor.fetchone()
    if row is None:
        raise RoundStateError(f'The round "{round}" was deleted and takes no grades.')
    if row[0] != Round.State.OPEN:
        round.refresh_from_db(fields=["state", "closed_at", "closed_by", "closed_version"])
    require_open(round)


@transaction.atomic
def change_round(
    round: Round,
    by: User,
    *,
    continue_after_settled: bool | None = None,
    judges: Sequence[User] | None = None,
    guidelines: str | None = None,
) -> Round:
    """Change an open round and return it; None leaves a value unchanged.

    Grades of removed judges remain; their leased items go to others. Raises RoundStateError, NotAJudgeError,
    RoundError.
    """
    require_lead(round, by)
    round = read_again(Round.objects.select_for_update(of=("self",)), round.pk)
    require_open(round)
    round.continue_after_settled = (
        round.continue_after_settled if continue_after_settled is None else continue_after_settled
    )
    round.guidelines = round.guidelines if guidelines is None else guidelines
    round.save(update_fields=["continue_after_settled", "guidelines", "updated_at"])
    if judges is not None:
        require_judges(judges, overlap_judges=round.overlap_judges if round.overlap else 1)
        round.judges.set(judges)
        Slot.objects.filter(round=round, done=False).exclude(judge__in=judges).update(judge=None, until=None)
    return round


def require_judges(judges: Sequence[User], *, overlap_judges: int) -> None:
    """Raise RoundError unless the judges can sign in and number at least one, and as many as an item wants."""
    if not judges:
        raise RoundError("A round needs judges: name at least one.", field="judges")
    for judge in judges:
        if not (judge.is_active and judge.is_staff):
            raise RoundError(f"{judge} cannot sign in here: judges must be active staff.", field="judges")
    count = len(set(judges))
    if count < overlap_judges:
        raise RoundError(
            f"The overlap needs {overlap_judges} judges per item, but the round has {counted(count, 'judge')}: name "
            "more, or set the overlap to 0.",
            field="overlap",
        )


def find_judges(names: Sequence[str], among: QuerySet[User] | None = None) -> list[User]:
    """Return the users with these names. Raises RoundError for the first name that is missing `among` them."""
    candidates = User.objects.all() if among is None else among
    users = {user.username: user for user in candidates.filter(username__in=names)}
    whom = "No user" if among is None else "No user in your teams"
    for name in names:
        if name not in users:
            raise RoundError(f"{whom} has the user name {name!r}: name judges by user name.", field="judges")
    return [users[name] for name in dict.fromkeys(names)]
