"""The error of a file."""

from benchbench.errors import BenchbenchError


class FileFormatError(BenchbenchError):
    """A file that is not in its format; the sentence names file and line or key."""

    code = "invalid_file"
