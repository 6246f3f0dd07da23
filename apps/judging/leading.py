"""Leading a round that is open: whether it goes on, and who judges."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from apps.judging.errors import RoundError
from apps.judging.judges import require_lead, require_open
from apps.judging.models import Round, Slot
from benchbench.database.rereading import read_again
from benchbench.decimals import counted


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
