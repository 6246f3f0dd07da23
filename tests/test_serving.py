"""`serve` as a user meets it: a first start, Ctrl-C during work, and databases of an older version."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchbench.site.serving import STOP_SECONDS
from tests.checkout import CHECKOUT
from tests.ports import find_free_port
from tests.waiting import HANG_SECONDS, until

pytestmark = [pytest.mark.thorough, pytest.mark.long]
# A database of the first migrations of each room, with a user and a collection.
AGE = """
from benchbench import embedded; embedded.ensure()
import django; django.setup()
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
loader = MigrationExecutor(connection).loader
first = [(app, name) for app, name in loader.disk_migrations if name.startswith("0001") and app in loader.migrated_apps]
newest = {"auth", "contenttypes", "sessions"}
targets = [key for key in first if key[0] not in newest]
targets += [key for key in loader.graph.leaf_nodes() if key[0] in newest]
MigrationExecutor(connection).migrate(targets)
models = MigrationExecutor(connection).loader.project_state(targets).apps
models.get_model("auth", "User").objects.create(username="ada", is_staff=True, is_superuser=True)
models.get_model("collections", "Collection").objects.create(name="Handbook")
"""
# Without Django, which takes seconds to load.
EXECUTE = """
from benchbench import embedded; embedded.ensure()
import psycopg, sys
with psycopg.connect(embedded.find_places().database_url()) as connection:
    answer = connection.execute(sys.argv[1])
    if answer.description: print(*answer.fetchone())
"""
SHOW = "SELECT (SELECT name FROM collections_collection), (SELECT count(*) FROM django_migrations)"


class Home:
    """A data folder, and commands on it."""

    def __init__(self, data: Path) -> None:
        self.data, self.port = data, find_free_port()
        services = ("DATABASE_URL", "REDIS_URL")
        self.environment = {name: value for name, value in os.environ.items() if name not in services} | {
            "BENCHBENCH_DATA_DIR": str(data),
            "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        }

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def execute(self, statement: str) -> str:
        return self.show(EXECUTE, statement)

    def show(self, program: str, *arguments: str) -> str:
        completed = self.run("-c", program, *arguments)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def serve(self, *options: str, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        """Start the site; its output goes into the file `serve.log`."""
        with self.log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, *prefix, "manage.py", "serve", str(self.port), *options],
                cwd=CHECKOUT,
                env=self.environment,
                stdout=log,
                stderr=log,
                text=True,
            )

    @property
    def log(self) -> Path:
        return self.data.parent / "serve.log"

    def await_line(self, process: "subprocess.Popen[str]", pattern: str) -> str:
        until(lambda: re.search(pattern, self.log.read_text()) or process.poll() is not None, pattern)
        match = re.search(pattern, self.log.read_text())
        assert match, self.log.read_text()
        return match[0]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "data")
    yield home
    home.run("-m", "benchbench.embedded", "remove")


def stop(process: "subprocess.Popen[str]") -> None:
    """Press Ctrl-C. The web server and workers are killed after STOP_SECONDS, so the command ends within ten."""
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=HANG_SECONDS) == 0
    assert STOP_SECONDS < 10


def test_one_command_serves_and_works_and_ends(home: Home) -> None:
    process = home.serve()
    line = home.await_line(process, r"The site is at .*\n")
    assert re.search(rf"http://127.0.0.1:{home.port}/ .*user: admin   password: \S+   \(shown once\)", line)
    assert httpx.get(f"http://127.0.0.1:{home.port}/readyz").status_code == 200
    corpus = home.data.parent / "corpus"
    corpus.mkdir()
    for number in range(250):
        (corpus / f"{number}.md").write_text(f"# Page {number}\n\n" + f"Pear {number} and apple. " * 60)
    assert home.run("manage.py", "import_collection", str(corpus), "--name", "Handbook").returncode == 0
    built = home.run("manage.py", "build_index", "Handbook", "--name", "minilm")
    assert built.returncode == 0, built.stderr
    home.await_line(process, r"Index of .*: encoding, \d+\.\d %")
    stop(process)
    assert "Unfinished work continues at the next start." in home.log.read_text()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{home.port}/readyz")
    again = home.serve()
    home.await_line(again, r"Index of .*: completed")
    assert "password" not in home.log.read_text()
    stop(again)


def test_an_old_database_is_updated_or_unchanged(home: Home) -> None:
    home.show(AGE)
    before = home.execute(SHOW)
    assert "backup FILE`, then `" in home.run("manage.py", "prune").stderr
    backups = home.data / "backups"

    without_room = home.serve("--workers", "0", prefix=("-m", "tests.faults.small_disk", str(backups), "16384"))
    assert without_room.wait(timeout=HANG_SECONDS) == 1
    assert "No space left on device" in home.log.read_text()
    assert home.execute(SHOW) == before

    home.execute("CREATE TABLE retrieval_cutchunk (id int)")
    failing = home.serve("--workers", "0")
    assert failing.wait(timeout=HANG_SECONDS) == 1
    assert "The update failed: ProgrammingError: relation" in home.log.read_text()
    assert "The database is as before: its backup" in home.log.read_text()
    assert home.execute(SHOW) == before, "though earlier migrations had succeeded"

    home.execute("DROP TABLE retrieval_cutchunk")
    process = home.serve("--workers", "0")
    home.await_line(process, r"The site is at")
    stop(process)
    text, backup = home.log.read_text(), max(backups.iterdir())
    assert re.search(r"of an older version: \d+ migrations are not applied\. Writing a backup first", text)
    line = re.search(rf"Updated the database in \d+ s\. .* new data folder: (.* restore {backup})\n", text)
    assert line, text
    assert home.execute(SHOW).startswith("Handbook")
    former = Home(home.data.with_name("data-former"))
    unset = {name: value for name, value in home.environment.items() if name != "BENCHBENCH_DATA_DIR"}
    restored = subprocess.run(["bash", "-c", line[1]], cwd=CHECKOUT, env=unset, capture_output=True, text=True)
    assert restored.returncode == 0, restored.stderr
    assert former.execute(SHOW) == home.execute(SHOW)
    former.run("-m", "benchbench.embedded", "remove")


def test_documented_lines_work(home: Home) -> None:
    section = (
        (CHECKOUT / "docs" / "operations.md").read_text().partition("## From installation")[2].partition("\n## ")[0]
    )
    lines = [line.partition("#")[0].strip() for line in section.splitlines() if line.startswith("    ")]
    assert [line.split()[-1] for line in lines] == ["install", "run", "site.dump", "site.dump", "clean"]
    home.environment |= {"ADDRESS": f"127.0.0.1:{home.port}", "WORKERS": "0"}

    def paste(line: str) -> "subprocess.Popen[str]":
        folder = str(home.data.parent)
        line = line.replace("site.dump", f"{folder}/site.dump").replace("=restored", f"={folder}/restored")
        with home.log.open("w") as log:
            command = ["bash", "-c", f"exec env {line}"]
            return subprocess.Popen(command, cwd=CHECKOUT, env=home.environment, stdout=log, stderr=log, text=True)

    _, run, *later = lines  # .ci/run installs
    site = paste(run)
    home.await_line(site, r"The site is at")
    (server,) = subprocess.run(["pgrep", "-P", str(site.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(server), signal.SIGINT)
    assert site.wait(timeout=HANG_SECONDS) == 0, home.log.read_text()
    for line in later:
        assert paste(line).wait(timeout=HANG_SECONDS) == 0, home.log.read_text()
    assert not home.data.exists()
    Home(home.data.parent / "restored").run("-m", "benchbench.embedded", "remove")
