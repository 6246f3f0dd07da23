"""Errors with messages for users: raised once where the problem is known, presented once at the interface."""

import re

from benchbench.texts.storable import clean_text

LONGEST, LONGEST_FIELD = 2000, 200  # characters of a message and of its field; others may have written parts of them
FOLDERS = re.compile(r"(?<![\w.:/])(?:/[^\s/'\"]+)+/(?=[^\s/'\"])")


class BenchbenchError(Exception):
    """An error whose message names the problem and the remedy for the user.

    `code` is stable and meant for programs, `status` is the API's HTTP status, `field` names the invalid key, row or
    file, if any; commands alone add `by_command`, the remedy by their options. Interfaces present it. Only interfaces
    and workers, which store it, catch it. `is_misuse`: an option has no meaning, for which commands exit with 2.
    """

    code = "invalid"
    status = 400
    is_misuse = False

    def __init__(self, message: str, *, field: str | None = None, by_command: str = "") -> None:
        self.message = clean_text(message, LONGEST)
        super().__init__(self.message)
        self.field = clean_text(field, LONGEST_FIELD) if field else field
        self.by_command = clean_text(by_command, LONGEST_FIELD)


class ConflictError(BenchbenchError):
    """The state or use of a thing forbids the action."""

    code = "conflict"
    status = 409


class UnfitWorkerError(BenchbenchError):
    """This machine's model has the wrong revision; another machine may do the work. The message names the revisions."""


def error_text(error: Exception) -> str:
    """Return the text of an error to store and show, without folders; with its type if it is unexpected."""
    if isinstance(error, BenchbenchError):
        return strip_folders(error.message)
    return clean_text(f"{type(error).__name__}: {strip_folders(str(error)[: 2 * LONGEST])}", LONGEST)


def strip_folders(text: str) -> str:
    """Return a library's text without the folders of this machine: `…/model.bin`. Only the log may contain those."""
    return FOLDERS.sub("…/", text)


class FileFormatError(BenchbenchError):
    """A file does not follow its format; the message names file and line or key."""

    code = "invalid_file"
