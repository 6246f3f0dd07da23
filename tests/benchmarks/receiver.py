"""A receiver of notices."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "correct horse battery staple"


class Receiver(ThreadingHTTPServer):
    """A receiver that stores requests and answers with the next of `statuses`, at last 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.seconds = 0.0
        self.headers: dict[str, str] = {}
        self.act: Callable[[], None] = lambda: None  # done before the answer


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((dict(self.headers), body))
        time.sleep(self.server.seconds)
        self.server.act()
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass
