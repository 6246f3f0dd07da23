"""Failures of PostgreSQL by SQLSTATE, such as a held lock or a lost connection; reading rows that may be deleted."""

import re
from typing import TypeVar
from uuid import UUID

import psycopg
from django.core.exceptions import ObjectDoesNotExist
from django.db import Error, InterfaceError
from django.db.models import Model, QuerySet

from benchbench.errors import BenchbenchError

ENDED = ("08", "57P", "25P03", "25P04")  # beginnings of SQLSTATE: the connection is lost or was ended
DEADLOCKED = ("40P01", "40001")
LOCKED = "55P03"
CANCELLED = "57014"
UNFIT = "22"
TOO_LONG, OUT_OF_RANGE, LIMIT_EXCEEDED = "22001", "22003", "54000"
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


class UnfitValueError(BenchbenchError):
    """A value does not fit its column: a text is too long, a number too large, or PostgreSQL cannot hold it."""

    code = "unfit_value"


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
    """Return the error to report for what PostgreSQL refused or rolled back, keeping the connection; None for others.

    All but an UnfitValueError are temporary.
    """
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
    return _find_unfit_value(_find_driver_error(error))


def _find_unfit_value(error: BaseException | None) -> UnfitValueError | None:
    state, text = getattr(error, "sqlstate", None), str(error).partition("\n")[0]
    if state == LIMIT_EXCEEDED and text.startswith("index row"):
        return UnfitValueError("Nothing was saved: a name or an address is too long to be looked up. Shorten it.")
    if not (state or "").startswith(UNFIT) and not isinstance(error, psycopg.DataError):
        return None
    if state == TOO_LONG:
        limit = re.search(r"\((\d+)\)", text)
        suffix = f" of at most {int(limit[1]):,} characters" if limit else ""
        return UnfitValueError(f"Nothing was saved: a text is too long for its field{suffix}. Shorten it.")
    if state == OUT_OF_RANGE:
        return UnfitValueError("Nothing was saved: a number is too large for its field. Give a smaller one.")
    return UnfitValueError(f"Nothing was saved: a value does not fit its field ({text}). Correct it.")


def _find_driver_error(error: BaseException | None) -> BaseException | None:
    return error.__cause__ if isinstance(error, Error) else error


def read_again(rows: QuerySet[M], pk: UUID | int) -> M:
    """Return the row `pk` of `rows`, a queryset that may lock or annotate it. Raises DeletedError.

    For rows that the caller has read before. Any other `get` that finds nothing is a bug.
    """
    row = rows.filter(pk=pk).first()
    if row is None:
        raise _build_deleted_error(rows.model, pk)
    return row


def refresh(row: Model, rows: QuerySet[Model] | None = None) -> None:
    """Load the fields of a row again, by the queryset `rows` if that locks it. Raises DeletedError."""
    try:
        row.refresh_from_db(from_queryset=rows)
    except ObjectDoesNotExist:
        raise _build_deleted_error(type(row), row.pk) from None


def _build_deleted_error(model: type[Model], pk: object) -> DeletedError:
    noun, plural = model._meta.verbose_name, model._meta.verbose_name_plural
    return DeletedError(f"Another user just deleted the {noun} {pk}: list the {plural} again.")
