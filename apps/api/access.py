"""Finding what an address names, for the user who asks."""

from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model
from rest_framework.exceptions import NotFound, PermissionDenied

from benchbench.access import visible

M = TypeVar("M", bound=Model)


def find_visible(model: type[M], pk: UUID, user: Any, *, through: str = "") -> M:
    """Return the row that `user` may see; `through` is as in `visible`.

    Raises PermissionDenied for a user who may not view such rows at all. A row of somebody else's is not found, so that
    no answer tells which ids exist.
    """
    meta = model._meta
    if not any(user.has_perm(f"{meta.app_label}.{act}_{meta.model_name}") for act in ("view", "change")):
        raise PermissionDenied(f"You may not view any {meta.verbose_name}: ask an administrator for the permission.")
    row = visible(model._default_manager.filter(pk=pk), user, through=through).first()
    if row is None:
        raise NotFound(f"There is no {meta.verbose_name} {pk} that you may see.")
    return row
