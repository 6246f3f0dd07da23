"""Finding the round and the judge that a command names."""

from typing import Any

from apps.judging.errors import RoundError
from apps.judging.leading import find_judges
from apps.judging.models import Round, RoundItem
from benchbench.names import find_named


def find_round(named: str) -> Round:
    """Return the round whose name or id is `named`. Raises BenchbenchError."""
    return find_named(Round, named)


def find_judge(round: Round, name: str | None) -> Any:
    """Return the judge of a name; without one the only judge of the round. Raises RoundError."""
    if name:
        return find_judges([name])[0]
    judges = list(round.judges.order_by("username"))
    if len(judges) != 1:
        named = ", ".join(judge.get_username() for judge in judges)
        raise RoundError(f'The round "{round}" has several judges, {named}: say as whom.', field="judge")
    return judges[0]


def items_named(round: Round) -> dict[tuple[str, str], int]:
    """Return the ids of a round's items by query key and the document's external id."""
    rows = RoundItem.objects.filter(round=round)
    return {(key, document): pk for pk, key, document in rows.values_list("pk", "query__key", "document__external_id")}
