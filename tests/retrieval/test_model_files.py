"""Models that are not on this machine: asked for once, and never taken for a folder that has their name."""

import contextlib
import json
import socket
from functools import partial
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest.mock import Mock

import pytest
from huggingface_hub import constants

from apps.retrieval.apps import check_default_model
from apps.retrieval.encoders.model_files import (
    ModelError,
    fetch_model,
    find_model,
    list_unneeded,
    load_model,
    read_revision,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"older", "onnx/model.onnx": b"o"}


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does, for the one model that it has: there is not any network in tests."""

    def __init__(self, requested, *arguments):
        self.asked = requested
        super().__init__(*arguments)

    def do_GET(self):
        if self.path != "/api/agent-harnesses":  # which the library asks once a day, where it sees fit
            self.asked.append(self.path)
        _, _, remaining = self.path.partition("sentence-transformers/known")
        if not remaining and not self.path.endswith("known"):
            self.answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
        elif self.path.startswith("/api/models/") and "/tree/" in self.path:
            listed = [
                {"type": "file", "path": name, "size": len(content), "oid": sha1(content).hexdigest()}
                for name, content in FILES.items()
            ]
            self.answer(200, json.dumps(listed).encode())
        elif self.path.startswith("/api/models/"):
            files = [{"rfilename": name} for name in FILES]
            facts = {"id": "sentence-transformers/known", "sha": COMMIT, "siblings": files}
            self.answer(200, json.dumps(facts).encode())
        else:
            content = FILES[remaining.removeprefix(f"/resolve/{COMMIT}/")]
            self.answer(200, content, **{"X-Repo-Commit": COMMIT, "ETag": f'"{sha1(content).hexdigest()}"'})

    do_HEAD = do_GET

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *arguments):
        """Say nothing."""


@pytest.fixture
def online(tmp_path, monkeypatch):
    """Let this process ask the hub at an address, with an empty cache and a current folder of its own."""

    def ask(address):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")

    return ask


@pytest.fixture
def requests_of_hub(online):
    """What a hub is asked that has one model."""
    hits = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, hits))
    Thread(target=server.serve_forever, daemon=True).start()
    online(f"http://127.0.0.1:{server.server_port}")
    yield hits
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["SentenceTransformer", "CrossEncoder"])
def test_unresponsive_hub_is_asked_once_and_named(online, kind):
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        Thread(target=hang_up, args=(listener, connections), daemon=True).start()
        online(address)
        with pytest.raises(
            ModelError, match=rf"could not be downloaded from {address}\. Check the name .* The cause: \w+: .*[^.]\.$"
        ) as result:
            load_model(kind, "nobody/nothing")
    assert "'nobody/nothing' is not on this machine" in result.value.message
    assert 1 <= len(connections) <= 2, "a client of HTTP tries once more where a connection was ended"


def hang_up(listener, connections):
    """Take connections, and end each without an answer, until no listener is left."""
    with contextlib.suppress(OSError):
        while True:
            connection, peer = listener.accept()
            connections.append(peer)
            connection.close()


@pytest.mark.parametrize(("name", "requests"), [("nobody/nothing", 1), ("nothing", 2)])
def test_unpublished_name_is_looked_up_once(requests_of_hub, name, requests):
    with pytest.raises(ModelError, match=r"was not found on this machine or the Hugging Face Hub\. Check the name"):
        load_model("SentenceTransformer", name)
    assert len(requests_of_hub) == requests


def test_invalid_hub_name_is_not_requested(requests_of_hub):
    with pytest.raises(ModelError, match="was not found on this machine or the Hugging Face Hub"):
        fetch_model("a..b/c--d")
    assert requests_of_hub == []


@pytest.mark.parametrize("name", ["known", "sentence-transformers/known"])
def test_download_ignores_an_unrelated_folder_of_that_name(requests_of_hub, name):
    folder = Path(name)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("another")
    assert find_model(name) is None
    fetched = fetch_model(name)
    remote = {file.name: file.read_bytes() for file in fetched.iterdir()}
    assert remote == {"config.json": b"{}", "model.safetensors": b"weights"}
    assert (find_model(name), read_revision(fetched)) == (fetched, COMMIT)
    assert find_model(f"./{name}") == folder
    assert find_model(str(folder.resolve())) == folder.resolve()


def test_missing_local_path_sends_no_request(requests_of_hub):
    with pytest.raises(ModelError, match=r"'\./missing' is not on this machine: this folder does not exist"):
        load_model("CrossEncoder", "./missing")
    assert requests_of_hub == []


def test_pickled_weights_are_not_fetched(requests_of_hub, monkeypatch):
    monkeypatch.delitem(FILES, "model.safetensors")
    with pytest.raises(ModelError, match=r"may run code when loaded \(pytorch_model\.bin\): use .* safetensors"):
        fetch_model("sentence-transformers/known")
    assert len(requests_of_hub) == 1  # that it is there, and with which files


TRANSFORMER = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
PICKLE = b"cos\nsystem\n(S'touch /nonexistent/ran'\ntR."


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pytorch_model.bin": PICKLE}, r"may run code when loaded \(pytorch_model\.bin\)"),
        ({"model.safetensors": b"", "2_Dense/pytorch_model.bin": PICKLE}, r"2_Dense/pytorch_model\.bin"),
        ({"weights.pkl": PICKLE}, r"weights\.pkl"),
        ({"modules.json": [{"type": "subprocess.Popen", "path": ""}]}, "has its own code"),
        ({"modules.json": [{"type": "evil.Evil", "path": ""}], "evil.py": b"1/0"}, "has its own code"),
        ({"config.json": {"auto_map": {"AutoModel": "evil.Evil"}}, "evil.py": b"1/0"}, "has its own code"),
        ({"modules.json": TRANSFORMER, "a/config.json": {"auto_map": {}}, "evil.py": b"1/0"}, "has its own code"),
    ],
)
def test_folder_with_code_is_rejected_before_loading(tmp_path, monkeypatch, files, message):
    import sentence_transformers

    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    for kind in ("SentenceTransformer", "CrossEncoder"):
        monkeypatch.setattr(sentence_transformers, kind, Mock(side_effect=AssertionError("it was loaded")))
        with pytest.raises(ModelError, match=message):
            load_model(kind, str(tmp_path))


def test_weights_for_others_are_not_needed():
    files = ["2_Dense/pytorch_model.bin", "tf_model.h5", "openvino/a.bin", "1_Pooling/config.json", *FILES]
    assert list_unneeded(files) == ["onnx/model.onnx", "openvino/a.bin", "pytorch_model.bin", "tf_model.h5"]


@pytest.fixture
def checking(monkeypatch):
    monkeypatch.setattr("sys.argv", ["manage.py", "check"])


def test_a_model_that_is_here_is_no_matter(checking):
    assert check_default_model() == []


def test_missing_default_model_is_named_with_a_remedy(checking, settings):
    settings.BENCHBENCH_DEFAULT_MODEL = "nobody/nothing"
    (warning,) = check_default_model()
    assert "'nobody/nothing' is not on this machine" in warning.msg
    assert "BENCHBENCH_DEFAULT_MODEL" in warning.hint
