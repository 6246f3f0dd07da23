"""Output of commands in any encoding, and to readers that leave: the exit status reports only of the work."""

import ast
import json
import os
import subprocess
import sys

import pytest
from django.core.management import get_commands
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkout import CHECKOUT
from tests.services import environment_of_processes

COMMANDS = sorted(name for name, app in get_commands().items() if str(app).startswith("apps."))
# Without its own UTF-8 mode, Python takes the encoding of the locale for files and names too.
PLAIN = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
TERMINALS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
    "C": {"LC_ALL": "C", **PLAIN},
    "utf-8": {"PYTHONIOENCODING": "utf-8:strict"},
}
OTHER_TERMINALS = sorted(TERMINALS.keys() - {"ascii"})
ECHO = "import sys; from benchbench.busy import open_outputs; open_outputs(); sys.stdout.write(sys.argv[1])"
PRINTS = "import sys, json; from benchbench.busy import open_outputs; open_outputs(); print(*json.loads({text!r}))"
# Runs commands that succeed, one after the other: each start of a process takes seconds.
RUN = """
import json, sys
from benchbench.cli import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["benchbench", *arguments]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""
NAME = "größe – 检索 €"


def run(*arguments, terminal="ascii", stdout=subprocess.PIPE, **more):
    environment = {name: value for name, value in environment_of_processes().items() if name != "PYTHONIOENCODING"}
    environment |= TERMINALS[terminal]
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, stdout=stdout, stderr=subprocess.PIPE, **more)


def closed_pipe():
    """Return the writing end of a pipe that no one reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.fixture
def site(process_environment, tmp_path):
    """A benchmark on the site, every name in it beyond ASCII."""
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    query, document = {"_id": "qé – €", "text": "größe"}, {"_id": "dö – €", "title": "Größe", "text": "größe ändern"}
    (beir / "corpus.jsonl").write_text(json.dumps(document), encoding="utf-8")
    (beir / "queries.jsonl").write_text(json.dumps(query), encoding="utf-8")
    (beir / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nqé – €\tdö – €\t1\n", encoding="utf-8")
    (tmp_path / "floors.yaml").write_text("floors: {mrr: 0.5}", encoding="utf-8")
    (tmp_path / "good.run").write_text("qé–€ Q0 dö–€ 1 1.0 größe\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("qé–€ 0 dö–€ 1\n", encoding="utf-8")
    return tmp_path


BENCHMARKING = (
    ("import_beir", "{site}/beir", "--name", NAME),
    ("build_index", NAME, "--name", NAME, "--encoder", "", "--wait"),
    ("run_benchmark", NAME, "--modes", "sparse", "--indexes", NAME, "--name", NAME, "--wait", "--verbose"),
    ("gate", NAME, "--rules", "{site}/floors.yaml"),
    ("score", "--qrels", "{site}/qrels.txt", "--run", "{site}/good.run", "--by-query"),
)
REPORTING = (
    ("preview_benchmark", NAME, "--modes", "sparse", "--indexes", NAME),
    ("export_dataset", NAME, "--format", "benchbench-json", "--output", "{site}/out.json", "--force"),
    ("export_results", NAME, "--format", "markdown", "--output", "{site}/out.md", "--force"),
    ("rescore", NAME),
    ("prune",),
)
REFUSED = (("gate", "größe"), ("größe",), ("score", "--qrels", "größe", "--run", "größe"))


def succeed(commands, site=None, **options):
    """Run commands that must succeed; return what they printed."""
    filled = [[piece.format(site=site) for piece in command] for command in commands]
    process = run("-c", RUN, json.dumps(filled), **options)
    assert process.returncode == 0, process.stderr.decode(errors="replace")
    assert b"Traceback" not in process.stderr, process.stderr.decode(errors="replace")
    return process


def test_a_gate_passes_on_a_plain_terminal(site):
    assert b"q\\xe9\\u2013\\u20ac" in succeed(BENCHMARKING, site, terminal="ascii").stdout


@pytest.mark.thorough
@pytest.mark.long
def test_reports_succeed_on_any_terminal_or_none(site):
    assert b"q\xe9\\u2013\\u20ac" in succeed(BENCHMARKING, site, terminal="latin-1").stdout
    succeed(REPORTING, site, terminal="ascii")
    succeed((*REPORTING, *BENCHMARKING[-2:]), site, stdout=closed_pipe())


@pytest.mark.parametrize(
    ("arguments", "terminal"), [(one, "ascii") for one in REFUSED] + [(REFUSED[0], name) for name in OTHER_TERMINALS]
)
def test_refusals_print_on_any_terminal(arguments, terminal, process_environment):
    process = run("-m", "benchbench", *arguments, terminal=terminal)
    assert process.returncode in (1, 2)
    assert b"UnicodeEncodeError" not in process.stderr
    assert b"Traceback" not in process.stderr


@pytest.mark.thorough
def test_every_help_prints_in_ascii():
    names = (*COMMANDS, "score", "audit")
    process = succeed([(name, "--help") for name in names])
    assert process.stderr == b""
    assert process.stdout.count(b"usage: benchbench ") == len(names)


@pytest.mark.thorough
@pytest.mark.parametrize("terminal", OTHER_TERMINALS)
def test_a_help_prints_on_any_terminal(terminal):
    process = run("-m", "benchbench", "gate", "--help", terminal=terminal)
    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.thorough
def test_a_help_that_nobody_reads_succeeds():
    assert run("manage.py", "gate", "--help", stdout=closed_pipe()).returncode == 0


@settings(max_examples=10)  # of a process each
@given(st.lists(st.text(st.characters(), max_size=50), max_size=50))
def test_no_text_fails_on_an_encoding(texts):
    process = run("-c", PRINTS.format(text=json.dumps(texts)))
    assert (process.returncode, process.stderr) == (0, b"")
    process.stdout.decode("ascii")


def test_closed_streams_change_no_exit_status(tmp_path):
    for closing in (">&-", "2>&-", ">&- 2>&-", "| true", ">/dev/null", "2>&1 | true"):
        for program in ("manage.py", "-m benchbench"):
            command = f"set -o pipefail; {sys.executable} {program} --help {closing}"
            process = subprocess.run(["bash", "-c", command], cwd=CHECKOUT, capture_output=True)
            assert (process.returncode, process.stderr) == (0, b""), command


def test_every_entry_opens_its_outputs():
    entries = (CHECKOUT / "benchbench").rglob("__main__.py")
    for entry in (CHECKOUT / "manage.py", *entries):
        text = entry.read_text(encoding="utf-8")
        assert "benchbench.cli import main" in text or "open_outputs()" in text, entry
    assert 'benchbench = "benchbench.cli:main"' in (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")


def list_texts_without_encoding(tree):
    """Yield the lines of calls that read or write text in the encoding of the locale."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        owner = getattr(getattr(call.func, "value", None), "id", "")
        labelled = {keyword.arg: keyword.value for keyword in call.keywords}
        position = {"read_text": 0, "write_text": 1, "open": 1 if isinstance(call.func, ast.Name) else 0, "fdopen": 1}
        modes = [piece.value for piece in call.args if isinstance(piece, ast.Constant) and isinstance(piece.value, str)]
        mode = getattr(labelled.get("mode"), "value", modes[-1] if modes else "r")
        is_text = name in ("read_text", "write_text", "TextIOWrapper") or (name == "fdopen" and "b" not in mode)
        is_file = name == "open" and isinstance(call.func, ast.Name) and "b" not in mode
        decodes = owner == "subprocess" and labelled.keys() & {"text", "universal_newlines"}
        supplied = "encoding" in labelled or (name == "TextIOWrapper" and len(call.args) > 1)
        function = isinstance(call.func, ast.Name) and name in position and name != "open"
        if (is_text or is_file or decodes) and not supplied and not function:
            yield call.lineno


def test_no_file_is_read_in_the_locale():
    hits = [
        f"{path.relative_to(CHECKOUT)}:{line}"
        for room in ("apps", "benchbench")
        for path in (CHECKOUT / room).rglob("*.py")
        for line in list_texts_without_encoding(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert hits == []
