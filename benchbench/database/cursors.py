"""Server-side cursors that an error leaves open in the frames that it passed: closed at once."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def closing_cursors() -> Iterator[None]:
    """Close whatever an error leaves half read in this block: clear the frames of it and of the errors behind it.

    Left to a garbage collection, a cursor is closed whenever that comes, and so perhaps amid another statement of the
    same connection and thread: it then waits for the connection's lock, which its own thread holds, for ever.
    """
    try:
        yield
    except BaseException as error:
        behind: BaseException | None = error
        while behind is not None:
            traceback.clear_frames(behind.__traceback__)  # those that are still at work are left alone
            behind = behind.__cause__ or behind.__context__
        raise
