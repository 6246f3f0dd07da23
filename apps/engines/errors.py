"""Errors of requests to search engines and to addresses of notices."""

from benchbench.errors import BenchbenchError


class EngineError(BenchbenchError):
    """A search engine is not declared, or does not give a complete answer."""

    code = "engine"


class TemporaryEngineError(EngineError):
    """The engine fails for now: another request may succeed, after `retry_after` seconds if the engine says so."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineTimeoutError(TemporaryEngineError):
    """A request took longer than its total time. It is not repeated at once, because it may be a slow query."""


class EngineDownError(EngineError):
    """The engine did not answer for as long as its declaration waits: no further question can be asked."""

    code = "engine_down"


class UnsentError(EngineError):
    """An open loop that cannot keep up with its rate ended before this request."""

    def __init__(self) -> None:
        super().__init__("The query was not sent, because searches did not keep up with the rate: choose a lower rate.")


class AnswerError(EngineError):
    """An answer cannot be mapped, or is only part of one. `path` failed on `looked_at`."""

    def __init__(self, message: str, *, path: str = "", looked_at: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.looked_at = looked_at
