"""A small search engine over HTTP, for arms that ask one."""

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from django.conf import settings


class Shop(ThreadingHTTPServer):
    """A search engine: it answers every query with `ranking`, reversed if asked for `newest`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranking: list[str] = []
        self.seconds = 0.0
        self.failing = False
        self.body: bytes | None = None  # of all answers, instead of hits
        self.wrong: set[str] = set()  # queries with an answer that cannot be read
        self.unavailable: Callable[[int], bool] = lambda number: False  # by the number of the request, from 1
        self.asked: list[tuple[str, float]] = []


class Handler(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        values = {name: hit[0] for name, hit in parse_qs(urlsplit(self.path).query).items()}
        self.server.asked.append((values["q"], time.monotonic()))
        time.sleep(self.server.seconds)
        ids = self.server.ranking[:: -1 if values.get("newest") == "true" else 1]
        hits = [
            {"id": one, "score": 1.0, "title": f"Title of {one}", "text": f"about {one}"}
            for one in ids[: int(values["size"])]
        ]
        body = self.server.body or json.dumps({"hits": hits, "done": values["q"] not in self.server.wrong}).encode()
        is_unavailable = self.server.unavailable(len(self.server.asked))
        self.send_response(503 if is_unavailable else 500 if self.server.failing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def declare_anew(**changes: Any) -> None:
    """Change the declaration of the engine, or with `shop=None` remove it."""
    path = Path(settings.BENCHBENCH_ENGINES)
    declared = yaml.safe_load(path.read_text())["engines"]["shop"] | changes
    path.write_text(yaml.safe_dump({} if "shop" in changes else {"engines": {"shop": declared}}))
