"""The bin of the site: what users delete stays there for some days, and can be restored by who may delete it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DataError, IntegrityError, ProgrammingError, connection, transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from psycopg.errors import ForeignKeyViolation, UniqueViolation

from apps.accounts.models import Deletion
from benchbench.access import AnyUser, find_owned, permits
from benchbench.database.bin import TAKING, count_rows, estimate_bytes, forget_rows, rename_rows, restore_rows
from benchbench.errors import ConflictError
from benchbench.models import NamedModel, OwnedModel, PublicModel
from benchbench.names import MAX_LENGTH, find_free_name
from benchbench.site.deleting import find_losses

LONGEST_NAME = 500
ENDING = " (restored)"


def estimate_size(row: Model) -> int:
    """Return about how many bytes the bin would take for `row` and what goes with it."""
    contents = find_losses(row).contents
    return estimate_bytes(
        (count_rows(list(contents.values())) if contents else {}) | getattr(row, "count_parts", dict)()
    )


def plan_deletion(row: Any) -> Deletion | None:
    """Return what the bin would have of `row`, not stored; None if a deletion could not be taken back."""
    days = settings.BENCHBENCH_KEEP_DELETED_DAYS
    if not days or getattr(row, "owned_by", None) is None:
        return None
    size = estimate_size(row)
    if size > settings.BENCHBENCH_KEEP_DELETED_BYTES:
        return None
    owned = reduce(getattr, filter(None, row.owned_by.split("__")), row)
    return Deletion(
        kind=row._meta.label,
        object_id=row.pk,
        name=str(row)[:LONGEST_NAME],
        owner_id=owned.owner_id,
        team_id=owned.team_id,
        until=timezone.now() + timedelta(days=days),
        size=size,
    )


@contextmanager
def keep_deleted(row: Model, by: User) -> Iterator[Deletion | None]:
    """Put `row`, which the block deletes, into the bin. Gives None if a deletion cannot be taken back."""
    deletion = plan_deletion(row)
    if deletion is None:
        yield None
        return
    with transaction.atomic():
        token = TAKING.set(deletion)
        try:
            yield deletion
        finally:
            TAKING.reset(token)
        deletion.deleted_by = by
        deletion.save(force_insert=True)


def list_deletions(user: AnyUser) -> QuerySet[Deletion]:
    """Return the deletions of rows that the user might have deleted: of a kind that they may delete, and see."""
    conditions = Q(pk=None)
    for model in apps.get_models():
        if issubclass(model, PublicModel) and model.owned_by is not None and permits(model, user, "delete"):
            sees_all = permits(find_owned(model, model.owned_by), user, "view_all")
            conditions |= Q(kind=model._meta.label) & (Q() if sees_all else OwnedModel.seen_by(user))
    return Deletion.objects.filter(conditions)


def restore(deletion: Deletion, *, rename: bool = False) -> Any:
    """Restore what was deleted, and return its row; `rename` gives it a free name: "library (restored)".

    Raises ConflictError if its name was taken, something that it refers to was deleted, or a table does not fit.
    """
    model = apps.get_model(deletion.kind)
    try:
        with transaction.atomic():
            _lock(deletion)
            if rename:
                rename_rows(deletion, model, lambda name: _find_name(name, model))
            restore_rows(deletion)
            row = model._default_manager.get(pk=deletion.object_id)
            if issubclass(model, NamedModel):
                row.require_distinct(row.name, row=row.pk, **{key: getattr(row, key) for key in row.name_scope})
            connection.check_constraints()
            empty(deletion)
    except (IntegrityError, ProgrammingError, DataError, ConflictError) as error:
        raise ConflictError(f'"{deletion}" was not restored. {_explain(error, model)}') from error
    return row


def _find_name(name: str, model: type[Model]) -> str:
    rows = model._default_manager
    return find_free_name(f"{name[: MAX_LENGTH - len(ENDING)]}{ENDING}", rows.values_list("name", flat=True))


def _lock(deletion: Deletion) -> None:
    """Lock a deletion, before anything of it. Raises ConflictError if it is no longer in the bin."""
    if not Deletion.objects.select_for_update().filter(pk=deletion.pk):
        raise ConflictError("It is no longer in the bin: another user restored it, or emptied the bin.")


def _explain(error: Exception, model: type[Model]) -> str:
    """Return why a restoration failed, and the remedy."""
    if isinstance(error, ConflictError):
        return error.message
    cause: Any = error.__cause__
    nouns: dict[Any, str] = {one._meta.db_table: str(one._meta.verbose_name) for one in apps.get_models()}
    if isinstance(cause, ForeignKeyViolation):
        missing = next(one for one in apps.get_models() if f'"{one._meta.db_table}"' in str(cause.diag.message_detail))
        fate = "went with another deletion" if getattr(missing, "owned_by", None) is None else "was deleted too"
        return f"It needs the {missing._meta.verbose_name} that {fate}: restore that first, if it is still in the bin."
    if not isinstance(cause, UniqueViolation):
        return f"BenchBench was updated since, and its tables no longer fit: {cause.diag.message_primary}."
    if cause.diag.table_name == model._meta.db_table:
        return f"Another {model._meta.verbose_name} has its name now: restore it under another name."
    return f"The same {nouns.get(cause.diag.table_name, 'row')} exists again: delete that one first."


def empty(deletion: Deletion) -> None:
    """Delete for good what a deletion has in the bin. Raises ConflictError if that was restored meanwhile."""
    with transaction.atomic():
        _lock(deletion)
        forget_rows(deletion)
        deletion.delete()
