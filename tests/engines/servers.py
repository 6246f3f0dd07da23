"""Small servers on this machine, each a function that answers a connection: search engines, and those that attack."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


def reply(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"
    return head.encode() + body


class RawServer:
    """A server whose `act` gets each connection and the bytes of its request; `requests` are all of them."""

    def __init__(self, act: Callable[[socket.socket, bytes], None], context: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self._act, self._context = act, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            request = connection.recv(65536)
            if request:
                self.requests.append(request)
                self._act(connection, request)
                connection.close()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serve(act: Callable[[socket.socket, bytes], None], context: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    server = RawServer(act, context)
    try:
        yield server
    finally:
        server.close()


class SearchServer(ThreadingHTTPServer):
    """An engine with kept-alive connections: `answer(query)` returns a status and an object; queries are counted."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Callable[[dict[str, str]], tuple[int, object]], port: int = 0) -> None:
        self.answer = answer
        self.queries: list[str] = []
        self.running = self.most_running = self.connections = 0
        self.headers: dict[str, str] = {}  # of every answer, next to the usual ones
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/search"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: SearchServer

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        with self.server.lock:
            self.server.queries.append(query.get("q", ""))
            self.server.running += 1
            self.server.most_running = max(self.server.most_running, self.server.running)
        status, answer = self.server.answer(query)
        with self.server.lock:
            self.server.running -= 1
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def search_server(answer: Callable[[dict[str, str]], tuple[int, object]], port: int = 0) -> Iterator[SearchServer]:
    server = SearchServer(answer, port)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def hits_of(query: dict[str, str]) -> tuple[int, object]:
    """Return two hits whose ids begin with the query."""
    text = query.get("q", "")
    return 200, {"found": 2, "hits": [{"id": f"{text}-{n}", "score": 2.0 - n, "title": f"Title {n}"} for n in (1, 2)]}
