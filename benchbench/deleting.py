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
    """Return the error that says which rows use `instance`: '… is used by mapping "a" and 2 more mappings …'."""
    noun = instance._meta.verbose_name
    return ConflictError(
        f'The {noun} "{instance}" cannot be deleted: it is used by {_phrase(users)}. Delete what uses it first.'
    )


def _phrase(users: tuple[Model, ...]) -> str:
    counts = Counter(type(user) for user in users)
    named = {type(user): user for user in users}
    return " and ".join(_part(named[model], count) for model, count in counts.items())


def _part(example: Model, count: int) -> str:
    meta = example._meta
    if count == 1:
        return f'the {meta.verbose_name} "{example}"'
    return f'{count} {meta.verbose_name_plural} ("{example}" among them)'
