"""The error of the embedded services."""

from benchbench.errors import BenchbenchError


class EmbeddedError(BenchbenchError):
    """An embedded service cannot be started, reached or stopped; the message ends with the last lines of its log."""

    code = "embedded"
    status = 503
