"""The objects that addresses name, for the user who asks."""

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from rest_framework.exceptions import NotFound, PermissionDenied

from benchbench.access import visible

M = TypeVar("M", bound=Model)


def find_visible(rows: QuerySet[M], pk: UUID | int, user: Any, *, through: str = "") -> M:
    """Return the row `pk` of `rows`, which a nested address narrows to those of its parent; `through` as in `visible`.

    Raises NotFound where there is none, PermissionDenied where it belongs to somebody else. An id is random, so that
    telling the two apart gives nothing away.
    """
    row = visible(rows.filter(pk=pk), user, through=through).first()
    if row is not None:
        return row
    noun = rows.model._meta.verbose_name
    if rows.filter(pk=pk).exists():
        raise PermissionDenied(f"The {noun} {pk} belongs to somebody else: ask its owner to share it with your team.")
    raise NotFound(f"There is no {noun} {pk} here.")
