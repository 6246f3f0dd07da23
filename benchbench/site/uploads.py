"""Uploads as a request brings them: a large one in a file without a name, which no end of the process leaves behind."""

import tempfile
from typing import Any, cast

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopFutureHandlers


class NamelessFileUploadHandler(FileUploadHandler):
    """Django's own for large files, but for the name: the kernel frees the file when it is closed, however that is."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        # Nobody has a name to open it by; the upload closes it.
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
        except OSError:  # such as a full disk, which is to have its room back at once
            self.file.close()
            raise

    def file_complete(self, file_size: int) -> UploadedFile:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
