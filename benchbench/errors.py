"""The errors that people read: raised once where the fault is known, presented once at the interface."""

import re

FOLDERS = re.compile(r"(?<![\w.:/])(?:/[^\s/'\"]+)+/(?=[^\s/'\"])")


class BenchbenchError(Exception):
    """An error whose message is a sentence for the user, naming the thing and the way out.

    `code` is stable and for programs, `status` is the HTTP status an API answers with, `field` names the key, row or
    file at fault where there is one. Interfaces present it; nothing else catches it but workers, which store it.
    """

    code = "invalid"
    status = 400

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class ConflictError(BenchbenchError):
    """The thing is in a state, or in use, that forbids the act."""

    code = "conflict"
    status = 409


class UnfitWorkerError(BenchbenchError):
    """This machine cannot do the work, and another might: its model has another revision. The sentence says which."""


def told(error: Exception) -> str:
    """Return the text of an error to store and show: its message, or the type and text of an unexpected error."""
    if isinstance(error, BenchbenchError):
        return error.message
    return f"{type(error).__name__}: {without_folders(str(error))}"


def without_folders(text: str) -> str:
    """Return a library's text without the folders of this machine: `…/model.bin`. Only the log may contain those."""
    return FOLDERS.sub("…/", text)


class FileFormatError(BenchbenchError):
    """A file that is not in its format; the sentence names file and line or key."""

    code = "invalid_file"
