"""The commands of the light wheel, on a live site."""

import json

import pytest

from apps.datasets.models import Dataset
from apps.operations.models import Operation
from apps.records.models import Benchmark
from benchbench.client import commands
from benchbench.client.commands import COMMANDS, build_parser, main
from tests.client.scripted import scripted

MATRIX = json.dumps({"search_modes": ["dense"], "score_thresholds": [None, 0.9], "k_values_for_metrics": [5]})


@pytest.fixture
def call(capsys):
    """Return a caller of a command at an address, which gives exit status, stdout and stderr."""

    def call(*arguments):
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return call


@pytest.mark.thorough
def test_commands_do_the_whole_job(site, token, manage, library, questions_file, call, monkeypatch):
    monkeypatch.setenv("BENCHBENCH_URL", site)
    monkeypatch.setenv("BENCHBENCH_TOKEN", token)
    manage("manage.py", "worker")
    folder, file = questions_file.parent, str(questions_file)
    assert call("upload", file, "--name", "fruits")[:2] == (0, f"Dataset {Dataset.objects.get().pk}: 3 queries.\n")
    run_options = ("--collection", "library", "--name", "nightly", "--dataset", "fruits", "--matrix", MATRIX)
    status, out, err = call("run", file, *run_options)
    assert (status, "nightly" in out, "benchmark: completed, 2 of 2 runs\n" in err) == (0, True, True), err
    benchmark = Benchmark.objects.get()
    assert call("wait", str(benchmark.pk))[:2] == (0, "benchmark: completed\n")
    operation = Operation.objects.get(subject_id=benchmark.pk)
    assert call("wait", str(operation.pk))[:2] == (0, "benchmark: completed\n")
    assert call("results", "nightly")[1] == out
    assert len(json.loads(call("results", "nightly", "--json")[1])["runs"]) == 2
    rules, comment = folder / "gate.yaml", folder / "comment.md"
    for floor, outcome in (("0.5", 0), ("0.99", 1)):
        rules.write_text(f"floors: {{recall@5: {floor}}}")
        status, out, _ = call("gate", "nightly", "--rules", str(rules), "--run", "1", "--markdown", str(comment))
        assert (status, comment.read_text()) == (outcome, out)
    rules.write_text("slices: {'category: none': {ndcg@5: 0.8}}")
    assert call("gate", "nightly", "--rules", str(rules))[0] == 2
    target = folder / "dense.run"
    write = ("export", "nightly", "--format", "trec-run", "--run", "2", "--output", str(target))
    assert call(*write)[0] == 0
    assert target.read_bytes().count(b"\n") == 3
    status, _, err = call(*write)
    assert (status, "File exists" in err) == (2, True)
    assert call(*write, "--force")[0] == 0
    assert call(*write[:-3], "3", "--output", str(folder / "none"))[2] == "--run 3: the benchmark has runs 1 to 2.\n"


def test_failed_command_exits_with_a_message(call, monkeypatch, tmp_path):
    monkeypatch.delenv("BENCHBENCH_URL", raising=False)
    missing = "The address of the site is missing: give it, or set BENCHBENCH_URL.\n"
    assert call("results", "nightly") == (2, "", missing)
    with scripted((200, {"benchmarks": [], "total": 0})) as site:
        monkeypatch.setenv("BENCHBENCH_URL", site.address)
        assert call("results", "nightly") == (2, "", "No benchmark named 'nightly' was found.\n")
        status, _, err = call("run", str(tmp_path), "--collection", "c", "--name", "n", "--matrix", "dense")
        assert (status, err.startswith("--matrix is not JSON: ")) == (2, True)
        assert call("gate", "nightly")[0] == 2
    texts = {"--json", "exit status: ", "BENCHBENCH_URL"}
    assert all(text in build_parser(name).format_help() for name in COMMANDS.keys() - {"mcp"} for text in texts)


def test_progress_stays_on_one_line_of_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(commands.sys.stderr, "isatty", lambda: True, raising=False)
    with commands.show_progress() as show:
        show("benchmark: evaluating, 41 %")
        show("benchmark: \x1b[2Jevaluating, 42 %")
    err = capsys.readouterr().err
    assert err == "\r\x1b[Kbenchmark: evaluating, 41 %\r\x1b[Kbenchmark:  [2Jevaluating, 42 %\r\x1b[K"
