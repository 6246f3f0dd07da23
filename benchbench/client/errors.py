"""The error of the client."""

from collections.abc import Mapping, Sequence

from benchbench.errors import BenchbenchError

UNREACHABLE = "unreachable"


class ClientError(BenchbenchError):
    """A site refused what was asked of it, failed, or did not answer.

    `status` is that of HTTP, and 0 where there is no answer to tell of. `code` is stable and for programs: the site's
    own, or one of the client's (docs/client.md). `message` is the sentence for people; `errors` maps fields of the
    request to sentences; `reference` is what an administrator finds a fault in the log by.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = UNREACHABLE,
        errors: Mapping[str, Sequence[str]] | None = None,
        reference: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = dict(errors or {})
        self.reference = reference

    def __str__(self) -> str:
        return f"{self.message} Reference: {self.reference}" if self.reference else self.message
