"""Transports of requests to language models: an answer has a limit in bytes, and is not unpacked."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

MAX_BYTES = 5_000_000


def make_transport(client_class: type) -> Any:
    """Return a transport for clients of httpx, or of its successor, on which `client_class` is built.

    It ends an answer of more than MAX_BYTES, or a compressed one, with ReadError.
    """
    client = next(base for base in client_class.__mro__ if base.__name__ == "Client")
    httpx = import_module(client.__module__.partition(".")[0])

    class Counted(httpx.SyncByteStream):  # type: ignore[name-defined]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            count = 0
            for block in self._stream:
                count += len(block)
                if count > MAX_BYTES:
                    raise httpx.ReadError(f"The answer has more than {MAX_BYTES:,} bytes.")
                yield block

        def close(self) -> None:
            self._stream.close()

    class Limited(httpx.HTTPTransport):  # type: ignore[name-defined]
        def handle_request(self, request: Any) -> Any:
            request.headers["Accept-Encoding"] = "identity"
            response = super().handle_request(request)
            if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
                response.close()
                raise httpx.ReadError("The answer is compressed.", request=request)
            response.stream = Counted(response.stream)
            return response

    return Limited()
