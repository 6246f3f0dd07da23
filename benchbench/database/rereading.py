"""Reading rows again that a request has read before: one that is gone now was deleted meanwhile, and is no fault."""

from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, QuerySet

from benchbench.errors import BenchbenchError

M = TypeVar("M", bound=Model)


class DeletedError(BenchbenchError):
    """A row that was there a moment ago has been deleted by another request."""

    code = "not_found"
    status = 404


def read_again(rows: QuerySet[M], pk: Any) -> M:
    """Return the row `pk` of `rows`, which may lock it or add to it. Raises DeletedError.

    For rows that the caller has read already. Any other `get` that finds nothing is a fault of ours.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise _deleted(rows.model, pk)
    return row


def refresh(row: Model, rows: QuerySet[Any] | None = None) -> None:
    """Load the fields of a row again, by `rows` where these lock it. Raises DeletedError."""
    try:
        row.refresh_from_db(from_queryset=rows)
    except ObjectDoesNotExist:
        raise _deleted(type(row), row.pk) from None


def _deleted(model: type[Model], pk: Any) -> DeletedError:
    noun, plural = model._meta.verbose_name, model._meta.verbose_name_plural
    return DeletedError(f"The {noun} {pk} was deleted by somebody else just now: list the {plural} that are left.")
