"""Deleting what nothing uses."""

from collections import Counter
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.deletion import ProtectedError, RestrictedError

from benchbench.errors import ConflictError


def delete_unused(instance: Model) -> None:
    """Delete `instance` and what belongs to it; raise `ConflictError` naming what uses it, and then delete nothing."""
    try:
        with transaction.atomic():
            instance.delete()
    except ProtectedError as error:
        raise in_use(instance, *error.protected_objects) from None
    except RestrictedError as error:
        raise in_use(instance, *error.restricted_objects) from None


def delete_rows(rows: QuerySet[Any]) -> None:
    """Delete rows in one statement, without looking for what points at them.

    A queryset's own `delete` loads the rows for that, and deletes them a hundred at a time. The caller deletes first
    what points at them; whatever is left over fails the transaction when it commits, by its foreign key.
    """
    rows._raw_delete(rows.db)


def in_use(instance: Model, *users: Model) -> ConflictError:
    """Return the error that says which rows use `instance`: '… is used by mapping "a" and 2 more mappings …'.

    Of what somebody else owns the name is left out, which is not for everybody who may delete `instance`.
    """
    noun = instance._meta.verbose_name
    whose = (None, getattr(instance, "owner_id", None))
    told = {type(user): user for user in users if _owner_id(user) in whose}
    counts = Counter(type(user) for user in users)
    used_by = " and ".join(_part(model, count, told.get(model)) for model, count in counts.items())
    return ConflictError(
        f'The {noun} "{instance}" cannot be deleted: it is used by {used_by}. Delete what uses it first.'
    )


def _owner_id(row: Any) -> Any:
    """Return whose a row is; that of a run is whose its benchmark is."""
    return getattr(getattr(row, "benchmark", row), "owner_id", None)


def _part(model: type[Model], count: int, example: Model | None) -> str:
    meta = model._meta
    if count == 1:
        return f'the {meta.verbose_name} "{example}"' if example else f"one {meta.verbose_name} that somebody else owns"
    among = f'"{example}" among them' if example else "which others own"
    return f"{count} {meta.verbose_name_plural} ({among})"
