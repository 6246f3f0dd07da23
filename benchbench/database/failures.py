"""Failures of PostgreSQL by SQLSTATE, such as a held lock or a lost connection; reading rows that may be deleted."""

from typing import Any, TypeVar

import psycopg
from django.core.exceptions import ObjectDoesNotExist
from django.db import Error, InterfaceError
from django.db.models import Model, QuerySet

from benchbench.errors import BenchbenchError

ENDED = ("08", "57P", "25P03", "25P04")  # beginnings of SQLSTATE: the connection is lost or was ended
DEADLOCKED = ("40P01", "40001")
LOCKED = "55P03"
CANCELLED = "57014"
M = TypeVar("M", bound=Model)


class DeletedError(BenchbenchError):
    """Another request has just deleted a row that this one had read."""

    code = "not_found"
    status = 404


class DeadlockError(BenchbenchError):
    """PostgreSQL rolled back a transaction to resolve a deadlock with another one."""

    code = "deadlock"
    status = 409


class LockedError(BenchbenchError):
    """Another transaction locked a row for longer than lock_timeout."""

    code = "locked"
    status = 409


class StatementCancelledError(BenchbenchError):
    """PostgreSQL ended a statement because it exceeded statement_timeout or was cancelled."""

    code = "statement_cancelled"
    status = 503


def was_ended(error: BaseException) -> bool:
    """Return whether an error of Django or the driver means that the connection to PostgreSQL is lost.

    The server stopped, or it ended the connection.
    """
    if isinstance(error, InterfaceError | psycopg.InterfaceError):
        return True
    cause = _find_driver_error(error)
    if not isinstance(cause, psycopg.OperationalError):
        return False
    return cause.sqlstate is None or cause.sqlstate.startswith(ENDED)


def find_failure(error: BaseException | None) -> BenchbenchError | None:
    """Return the error to report for a temporary failure of PostgreSQL that keeps the connection; None for others."""
    state = getattr(_find_driver_error(error), "sqlstate", None)
    if state in DEADLOCKED:
        return DeadlockError(
            "This request and another one locked the same rows in a different order, so PostgreSQL "
            "cancelled it: send it again."
        )
    if state == LOCKED:
        return LockedError(
            "Another transaction has locked these rows for too long. Nothing was changed: send the "
            "request again in a moment, or cancel the other work first."
        )
    if state == CANCELLED:
        return StatementCancelledError(
            "PostgreSQL cancelled a statement of this request: it exceeded statement_timeout, or an "
            "administrator cancelled it. Nothing was changed: ask for less, or raise the limit."
        )
    return None


def _find_driver_error(error: BaseException | None) -> BaseException | None:
    return error.__cause__ if isinstance(error, Error) else error


def read_again(rows: QuerySet[M], pk: Any) -> M:
    """Return the row `pk` of `rows`, a queryset that may lock or annotate it. Raises DeletedError.

    For rows that the caller has read before. Any other `get` that finds nothing is a bug.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise _build_deleted_error(rows.model, pk)
    return row


def refresh(row: Model, rows: QuerySet[Any] | None = None) -> None:
    """Load the fields of a row again, by the queryset `rows` if that locks it. Raises DeletedError."""
    try:
        row.refresh_from_db(from_queryset=rows)
    except ObjectDoesNotExist:
        raise _build_deleted_error(type(row), row.pk) from None


def _build_deleted_error(model: type[Model], pk: Any) -> DeletedError:
    noun, plural = model._meta.verbose_name, model._meta.verbose_name_plural
    return DeletedError(f"Another user just deleted the {noun} {pk}: list the {plural} again.")
