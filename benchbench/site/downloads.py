"""Downloads: a file as the answer to a request."""

import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

IN_MEMORY = 2**20
AT_ONCE = 2**16


def attachment(write: Callable[[IO[bytes]], None], name: str, content_type: str) -> StreamingHttpResponse:
    """Return what `write` writes as a file to keep.

    It is written before the answer begins, and what `write` raises is raised: a file that breaks off half-way would
    look like a whole one.
    """
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 -- the response closes it
    try:
        write(file)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return StreamingHttpResponse(
        _read(file),
        content_type=f"{content_type}; charset=utf-8",
        headers={"Content-Disposition": str(content_disposition_header(True, name))},
    )


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The file in parts. Not by a plain iterator: an ASGI server would read that into memory before it answers."""
    with file:
        while part := await sync_to_async(file.read)(AT_ONCE):
            yield part
