"""Cursors that an error leaves open are closed before anything else is asked of their connection."""

import gc
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection

from benchbench.database.tables import closing_cursors

pytestmark = pytest.mark.django_db(transaction=True)


def names() -> Iterator[str]:
    for user in User.objects.order_by("pk").iterator(chunk_size=1):
        yield user.username


def open_cursors() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE '_django_curs%'")
        return int(cursor.fetchone()[0])


def read_half() -> None:
    """Fail during reading, with the error in a frame of its own: a cycle, which only a garbage collection ends."""
    read = names()
    next(read)
    try:
        raise OSError(28, "No space left on device")
    except OSError as error:
        stored = error
    raise RuntimeError("It cannot be written.") from stored


def test_half_read_cursor_is_closed_after_an_error():
    User.objects.bulk_create(User(username=f"user {number}") for number in range(5))
    gc.disable()  # until the cursor was seen
    try:
        with pytest.raises(RuntimeError):
            read_half()
        assert open_cursors() == 1
        gc.collect()
        with pytest.raises(RuntimeError), closing_cursors():
            read_half()
        assert open_cursors() == 0
    finally:
        gc.enable()
