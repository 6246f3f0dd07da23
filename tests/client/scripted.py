"""A server that answers as it is informed, and keeps what it was asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

LOST = 0  # instead of a status: read the request, and close the connection without an answer


@dataclass
class Scripted:
    address: str
    answers: list[tuple[int, Any, dict[str, str]]]
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def keys(self) -> list[str | None]:
        """Return the Idempotency-Key of each request."""
        return [headers.get("idempotency-key") for _, _, headers, _ in self.asked]


@contextmanager
def scripted(*answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> Iterator[Scripted]:
    """Serve: a status, a body (JSON, or bytes as they are), and headers, for each request in turn."""
    script = Scripted("", [(status, body, dict(*headers)) for status, body, *headers in answers])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append((self.command, self.path, headers, content))
            status, body, more = script.answers.pop(0)
            if status == LOST:
                self.close_connection = True
                return
            answer = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(answer)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_DELETE = do_GET

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01], daemon=True)  # so soon it sees that it is to end
    thread.start()
    script.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
