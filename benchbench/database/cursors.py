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
        behind: list[BaseException | None] = [error]
        seen: set[int] = set()
        while behind:
            raised = behind.pop()
            if raised is not None and id(raised) not in seen:
                seen.add(id(raised))
                traceback.clear_frames(raised.__traceback__)  # those that are still at work are left alone
                behind += [raised.__cause__, raised.__context__]
        raise
