"""Making index grids: what is there is taken, the rest is declared and built, an operation each."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.retrieval.availability import UnavailableError
from apps.retrieval.grids.planning import Cell, Grid, plan_cell, plan_grid
from apps.retrieval.indexing import building_of
from apps.retrieval.models import Index
from apps.retrieval.reusing import Ingredients, index_of, unavailable_index
from benchbench.database.rereading import read_again
from benchbench.names import free_name


@dataclass(frozen=True)
class Made:
    """An index of a grid, and the operation that builds it; none where it is ready."""

    cell: Cell
    index: Index
    operation: Operation | None


@transaction.atomic
def make_grid(collection: Collection, grid: Grid, *, owner: User | None = None, by: User | None = None) -> list[Made]:
    """Make the indexes of a grid that are not there, and have those built that are not ready; all of them or none.

    They belong to `owner`, and count against the quota of `by`. Raises UnavailableError for all that is not to be had
    here, QuotaError, and as `plan_grid` and `create_index` do.
    """
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)  # who makes the same waits
    cells = plan_grid(locked, grid, owner=owner)
    lacking = dict.fromkeys(cell.lacking for cell in cells if cell.lacking)
    if lacking:
        raise UnavailableError(f"Nothing is made, since not all is to be had here: {'; '.join(lacking)}.")
    return [_made(locked, cell, owner, by) for cell in cells]


@transaction.atomic
def declare_indexes(
    collection: Collection, several: Iterable[Ingredients], *, owner: User | None = None
) -> dict[str, Index]:
    """Return an index of each of some ingredients, under a name that tells it from the others: the one that is there,
    or a new one, not built. One that is not to be had here has failed, and says why.

    Raises as `plan_cell` and `create_index` do.
    """
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)  # who makes the same waits
    declared: dict[str, Index] = {}
    for made_of in several:
        cell = plan_cell(locked, made_of, owner=owner, taken=list(declared))
        if cell.lacking:
            reason = f"{cell.lacking[0].upper()}{cell.lacking[1:]}."
            index = unavailable_index(locked, cell.made_of, name=cell.name, reason=reason, owner=owner)
        else:
            index = index_of(locked, cell.made_of, name=cell.name, owner=owner)
        declared[free_name(cell.name, declared)] = index
    return declared


def _made(collection: Collection, cell: Cell, owner: User | None, by: User | None) -> Made:
    index = index_of(collection, cell.made_of, name=cell.name, owner=owner)
    operation = None if index.status == Index.Status.READY else building_of(index, by=by or owner)
    return Made(cell, index, operation)
