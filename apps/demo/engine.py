"""A search engine for the demo: Datasette with SQLite's full-text index (FTS5) of the same documents."""

import json
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings

from apps.collections.sources import read_corpus
from benchbench.errors import BenchbenchError
from benchbench.reading import strict_yaml

ALIAS = "sqlite"
START_SECONDS = 60
# Words of the title count ten times as much as words of the text.
SEARCH = """
    SELECT id, title, -bm25(documents, 0, 10, 1) AS score, snippet(documents, 2, '', '', '…', 30) AS snippet
    FROM documents WHERE documents MATCH :query ORDER BY bm25(documents, 0, 10, 1), id
    LIMIT CAST(:size AS integer) OFFSET CAST(:offset AS integer)
"""


@contextmanager
def serve_engine(host: str, port: int, corpus: Path) -> Iterator[None]:
    """Serve a search of the documents in `corpus`, and declare it as the engine ALIAS.

    Raises BenchbenchError if Datasette is not installed or does not start.
    """
    if find_spec("datasette") is None:
        raise BenchbenchError("--engine needs Datasette: pip install 'benchbench[datasette]'.")
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_database(folder / "docs.db", corpus)
        (folder / "metadata.json").write_text(
            json.dumps({"databases": {"docs": {"queries": {"search": {"sql": SEARCH}}}}}), encoding="utf-8"
        )
        declared = folder / "engines.yaml"
        declared.write_text(strict_yaml.dump(declare(f"http://{host}:{port}")), encoding="utf-8")
        options = ["docs.db", "--metadata", "metadata.json", "--host", host, "--port", str(port)]
        server = subprocess.Popen(
            [sys.executable, "-m", "datasette", "serve", *options, "--setting", "max_returned_rows", "10000"],
            cwd=folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        settings.BENCHBENCH_ENGINES = str(declared)
        try:
            _await(server, host, port)
            yield
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout=10)
            server.kill()


def write_database(path: Path, corpus: Path) -> None:
    """Write the full-text index of a corpus: columns id, title and text, words by their Porter stem."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, text, tokenize = 'porter')")
        rows = ((document.external_id, document.title, document.text) for document in read_corpus(corpus))
        database.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)


def declare(address: str) -> dict[str, object]:
    """Return the declaration of the engine, as BENCHBENCH_ENGINES has it."""
    variables = {"address": address, "database": "docs", "canned_query": "search"}
    return {
        "engines": {
            ALIAS: {"preset": "datasette", "variables": variables, "version": "fts5", "private": True, "concurrency": 2}
        }
    }


def _await(server: "subprocess.Popen[bytes]", host: str, port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.2)
    raise BenchbenchError(f"Datasette did not start on port {port}.")
