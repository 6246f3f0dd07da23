"""Downloads of files, and the storage of uploads."""

import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, Any, cast

from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopFutureHandlers
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

IN_MEMORY = 2**20
AT_ONCE = 2**16


def attachment(write: Callable[[IO[bytes]], None], name: str, content_type: str) -> StreamingHttpResponse:
    """Return the output of `write` as a file to save.

    The file is written before the answer begins, so errors of `write` are raised: a truncated file would look like a
    complete one.
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
    """Yield the file in parts, asynchronously: Django would read a plain iterator into memory before it answers."""
    with file:
        while chunk := await sync_to_async(file.read)(AT_ONCE):
            yield chunk


class NamelessFileUploadHandler(FileUploadHandler):
    """Django's handler of large files, but without a file name: the kernel frees the file whenever it is closed."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        # The file has no name; the upload closes it.
        self.file = UploadedFile(
            cast(Any, tempfile.TemporaryFile()),  # noqa: SIM115
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )
        raise StopFutureHandlers

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        try:
            self.file.write(raw_data)
        except OSError:  # such as a full disk, whose space must be freed at once
            self.file.close()
            raise

    def file_complete(self, file_size: int) -> UploadedFile:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
