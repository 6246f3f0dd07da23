"""Presets whose servers are not here: the request that each sends, and documented answers read as hits."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from apps.engines.apps import check_declarations
from apps.engines.declarations import list_engines
from apps.engines.errors import EngineError
from apps.engines.storing import Reply
from tests.checkout import CHECKOUT

PRESETS = sorted((CHECKOUT / "apps/engines/presets").glob("*.yaml"))
ANSWERS = {
    path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "answers").glob("*.json"))
}
ON_REAL_SERVERS = {"chroma", "datasette", "groonga", "typesense"}  # tests/engines/test_servers.py


class Recorder(ThreadingHTTPServer):
    """A server that answers every request with `answer`, and remembers the last."""

    answer: Any
    path: str
    body: Any


class Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        self.server.path, self.server.body = self.path, json.loads(self.rfile.read(size)) if size else None
        body = json.dumps(self.server.answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    server = Recorder(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask_preset(ask, recorder, monkeypatch):
    """Ask the recorder, as a preset declares it, for two hits."""
    monkeypatch.setenv("ENGINE_KEY", "not-a-secret")

    def ask_preset(name, answer):
        recorder.answer = answer
        variables = {"address": f"http://127.0.0.1:{recorder.server_port}", **ANSWERS[name]["variables"]}
        keys = {"preset": name, "variables": variables, "secret": "ENGINE_KEY"}
        if "{vector}" in (CHECKOUT / f"apps/engines/presets/{name}.yaml").read_text():
            keys["encoder"] = "keyword:red,shoes"
        return ask('red "shoes"', 2, vector=[0.5, 0.25], **keys)

    return ask_preset


def test_every_preset_has_an_answer_or_server():
    assert {path.stem for path in PRESETS} == ON_REAL_SERVERS | set(ANSWERS)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets_name_their_source(path):
    comment = "".join(line for line in path.read_text().splitlines(keepends=True) if line.startswith("#"))
    page = (CHECKOUT / "docs/engines.md").read_text()
    source = re.search(r"# Source: (\S+)", comment)[1]
    cell = f"`{path.stem}`" if path.stem == "json" else f"[`{path.stem}`]({source})"
    row = next(line for line in page.splitlines() if line.startswith(f"| {cell}"))
    assert path.stem == "json" or source.startswith("https://")
    variables = yaml.safe_load(path.read_text())["variables"]
    assert all(f"`{name}`" in row for name in variables if name != "address")
    assert ("*" in row.split("|")[1]) == ("{vector}" in path.read_text())


def test_declarations_of_the_page_are_valid(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("TYPESENSE_KEY", "not-a-secret")
    blocks = re.findall(r"```yaml\n(.*?)```", (CHECKOUT / "docs/engines.md").read_text(), re.DOTALL)
    settings.BENCHBENCH_ENGINES = str(tmp_path / "engines.yaml")
    Path(settings.BENCHBENCH_ENGINES).write_text("".join(blocks[:2]))
    assert [engine.alias for engine in list_engines()] == ["shop", "own"]
    assert check_declarations() == []
    varied = blocks[1].replace('    query: {text: "{query}", count: "{size}", start: "{offset}"}\n', blocks[2])
    Path(settings.BENCHBENCH_ENGINES).write_text("engines:\n" + varied)
    assert list_engines()[0].complete({"boost": 2}) == {"boost": 2, "mode": "any"}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ANSWERS)
class TestAPreset:
    def test_it_sends_the_documented_request(self, ask_preset, recorder, name):
        ask_preset(name, ANSWERS[name]["answer"])
        address = urlsplit(recorder.path)
        sent = {
            "path": address.path,
            "query": dict(parse_qsl(address.query, keep_blank_values=True)),
            "body": recorder.body,
        }
        assert sent == ANSWERS[name]["request"]

    def test_it_reads_the_documented_answer(self, ask_preset, name):
        reply = ask_preset(name, ANSWERS[name]["answer"])
        assert isinstance(reply, Reply), reply
        assert [[hit.id, hit.score, hit.title, hit.snippet] for hit in reply.hits] == ANSWERS[name]["hits"]
        assert reply.total == ANSWERS[name]["total"]

    def test_no_hits_are_an_empty_ranking(self, ask_preset, name):
        reply = ask_preset(name, ANSWERS[name]["empty"])
        assert isinstance(reply, Reply), reply
        assert reply.hits == ()

    def test_half_an_answer_is_an_error(self, ask_preset, name):
        for partial in ANSWERS[name]["partial"]:
            error = ask_preset(name, partial)
            assert isinstance(error, EngineError), partial
            assert "complete_when" in str(error)
