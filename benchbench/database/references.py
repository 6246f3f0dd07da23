"""References: rows that point at others, which somebody else may be deleting at the same moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, connection, transaction
from psycopg.errors import ForeignKeyViolation

from benchbench.errors import ConflictError


@contextmanager
def referring(what: str) -> Iterator[None]:
    """A transaction that stores rows which point at others. Raises ConflictError where one of those was deleted.

    `what` is stored, in a sentence: "The benchmark". PostgreSQL looks at the end of the block, and not only at the
    commit, and from then on whoever deletes what is pointed at waits (`delete_unused`).
    """
    try:
        with transaction.atomic():
            yield
            connection.check_constraints()
    except IntegrityError as error:
        if not isinstance(error.__cause__, ForeignKeyViolation):
            raise
        raise ConflictError(
            f"{what} was not made: something that it is made of was deleted at the same moment. Look at what is there, "
            "and try again."
        ) from error
