"""`benchbench score`, as a person and as a pipeline call it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchbench.scoring.command import main
from tests.files.samples import QRELS, RUN, TOPICS, write_dataset, write_file

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = Path(__file__).parent / "golden"
TREC_QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\nq3 0 d9 1\n"
TREC_RUN = "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d3 1 .1 t\nq5 Q0 d3 1 .1 t\n"


@pytest.fixture
def trec(tmp_path):
    qrels, run = write_file(tmp_path / "qrels.txt.gz", TREC_QRELS), write_file(tmp_path / "bm25.run", TREC_RUN)
    return ["--qrels", str(qrels), "--run", str(run)]


@pytest.fixture
def golden(tmp_path):
    dataset, run = write_dataset(tmp_path / "golden-v1"), write_file(tmp_path / "run.json", RUN)
    return ["--dataset", str(dataset), "--run", str(run)]


def printed(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_command_prints_means_and_query_values_as_json(trec, capsys):
    assert printed(capsys, *trec, "-m", "P@1", "-m", "RR", "-m", "FirstRelevant", "--by-query") == {
        "measures": {"P@1": 1 / 3, "RR": 0.5, "FirstRelevant": 1.5},
        "mean": "macro",
        "queries": 3,
        "by_query": {
            "q1": {"P@1": 0.0, "RR": 0.5, "FirstRelevant": 2.0},
            "q2": {"P@1": 1.0, "RR": 1.0, "FirstRelevant": 1.0},
            "q3": {"P@1": 0.0, "RR": 0.0, "FirstRelevant": None},
        },
    }


def test_command_prints_a_table_and_warns_of_omitted_queries(trec, capsys):
    assert main([*trec, "-m", "nDCG@10", "-m", "RR", "--by-query"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-5:] == [
        *("RR       q3  0.0000", "nDCG@10  0.5436", "RR       0.5000"),
        *("mean     macro: every query with a judgment weighs the same", "queries  3"),
    ]
    assert err.splitlines() == [
        "Judged queries that bm25.run lacks, counted as 0: 1 of 3.",
        "Queries of bm25.run without judgments, left out: 1.",
    ]


def test_queries_of_other_splits_are_counted_separately(golden, tmp_path, capsys):
    assert main([*golden, "-k", "5", "--evaluation-split", "test"]) == 0
    assert "in other splits, left out: " in capsys.readouterr().err


def test_options_choose_measures_and_the_mean(trec, capsys):
    names = [f"{name}@{k}" for k in (5, 10, 20) for name in ("R", "P", "AP", "nDCG")]
    assert list(printed(capsys, *trec)["measures"]) == [*names, "RR"]
    assert list(printed(capsys, *trec, "-k", "3")["measures"]) == ["R@3", "P@3", "AP@3", "nDCG@3", "RR"]
    assert list(printed(capsys, *trec, "-m", "nDCG@10", "P@10", "AP")["measures"]) == ["nDCG@10", "P@10", "AP"]
    assert list(printed(capsys, "-m", "RR", "P@1", *trec, "-m", "AP")["measures"]) == ["RR", "P@1", "AP"]
    assert printed(capsys, *trec, "-m", "MAP", "-m", "RBP(p=0.5)")["measures"]["AP"] == 0.5
    assert printed(capsys, *trec, "-m", "RR", "--profile", "flowbaby-1.1")["measures"] == {"RR": (2 * 0.5 + 1) / 4}


def test_the_figures_of_a_flowbaby_dataset_are_flowbabys(golden, capsys):
    aggregate = printed(capsys, *golden, "-k", "5")["measures"]
    expected = {"P@5": 0.36, "R@5": 1, "AP@5": 0.933333, "nDCG@5": 0.967888, "RR": 1}
    assert aggregate == pytest.approx(expected, abs=5e-7)
    plain = printed(capsys, *golden, "-k", "5", "--profile", "plain")["measures"]
    assert plain["P@5"] == pytest.approx(0.333333, abs=5e-7)
    assert plain["AP@5"] == pytest.approx(0.944444, abs=5e-7)
    assert plain["nDCG@5"] == pytest.approx(0.973240, abs=5e-7)


def test_it_writes_flowbabys_files(golden, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    files = ["--output", f"{out}/results.json", "--markdown", f"{out}/results.md", "--summary", f"{out}/summary.json"]
    assert main([*golden, *files, "-k", "5", "10", "--evaluation-split", "test", "--git-sha", "abc123"]) == 0
    assert (out / "results.json").read_text() == (GOLDEN / "results.json").read_text()
    assert (out / "results.md").read_text() == (GOLDEN / "results.md").read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert summary.pop("timestamp").endswith("Z")
    assert summary.pop("duration_ms") >= 0
    assert summary == json.loads((GOLDEN / "summary.json").read_text())
    assert list(summary) == list(json.loads((GOLDEN / "summary.json").read_text()))


def test_profile_1_0_uses_only_the_first_slice(golden, tmp_path):
    path = tmp_path / "results.json"
    assert main([*golden, "--output", str(path), "--profile", "flowbaby-1.0"]) == 0
    results = json.loads(path.read_text())
    assert {name: owner["query_count"] for name, owner in results["per_slice_metrics"].items()} == {
        "a": 1,
        "b": 1,
        "default": 1,
    }
    assert results["aggregate_metrics"] == results["macro_metrics"]
    assert results["profile"] == "flowbaby-1.0"


def test_label_shape_counts_judgments_of_every_topic_and_grade(tmp_path):
    judged = [0, 1, 1, 2, 4]
    topics = [TOPICS[2] | {"query_id": f"q{number}"} for number in range(len(judged))]
    qrels = [
        {"query_id": f"q{number}", "canonical_item_id": f"d{item}", "relevance": item % 3}
        for number, count in enumerate(judged)
        for item in range(count)
    ]
    dataset = write_dataset(tmp_path / "shape", topics=topics, qrels=qrels)
    run = write_file(tmp_path / "run.json", RUN)
    assert main(["--dataset", str(dataset), "--run", str(run), "--output", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["label_shape_stats"] == {
        **{"min": 0, "max": 4, "mean": 1.6, "median": 1.0, "p95": 2.0},
        **{"pct_zero_positives": 20.0, "pct_one_positive": 40.0, "pct_two_plus_positives": 40.0, "total_queries": 5},
    }


def test_a_run_without_entries_has_no_figures(golden, tmp_path, capsys):
    write_file(tmp_path / "run.json", {"run_id": "r", "entries": []})
    assert main([*golden, "--output", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]) == 0
    results = json.loads((tmp_path / "out.json").read_text())
    assert (results["aggregate_metrics"], results["query_count"]) == ({}, 0)
    assert printed(capsys, *golden, "-m", "RR") == {"measures": {"RR": None}, "mean": "weighted", "queries": 0}


def test_command_orders_a_run_as_requested(golden, tmp_path, capsys):
    entries = [entry | {"rank": 9 - entry["rank"]} for entry in RUN["entries"]]
    write_file(tmp_path / "run.json", {"run_id": "r", "entries": entries})
    assert main([*golden, "-m", "RR"]) == 1
    assert "has ranks and scores that disagree" in capsys.readouterr().err
    by_score, by_rank = (
        printed(capsys, *golden, "-m", "nDCG@5", "--order-by", order)["measures"]["nDCG@5"]
        for order in ("score", "rank")
    )
    assert by_score == pytest.approx(0.967888, abs=5e-7)
    assert by_rank < 0.95


def test_warnings_go_to_stderr(tmp_path, capsys):
    dataset = write_dataset(tmp_path / "golden-v1", qrels=QRELS[1:])
    assert main(["--dataset", str(dataset), "--run", str(write_file(tmp_path / "run.json", RUN)), "--json"]) == 0
    assert "Warning: The topic 'q1' expects 2 relevant items, and qrels.json has 1." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--run", "missing.run"], "missing.run cannot be read: No such file or directory."),
        (["--run", "missing.json"], "missing.json cannot be read: No such file or directory."),
    ],
)
def test_a_fault_is_a_sentence_and_status_1(trec, arguments, sentence, capsys):
    assert main([*trec, *arguments]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nDGC@10", "'nDGC@10' is not a measure: the measure 'nDGC' does not exist"),
        ("P", "'P' is not a measure: it needs a cutoff, such as P@10."),
        ("nDCG@1.5", "the cutoff must be a whole number from 1 to 1,000,000."),
        ("P@0", "the cutoff must be a whole number from 1 to 1,000,000."),
        ("Accuracy@5", "the library ir_measures cannot compute Accuracy"),
    ],
)
def test_a_name_of_no_measure_is_status_2(trec, name, sentence, capsys):
    assert main([*trec, "-m", name]) == 2
    out, err = capsys.readouterr()
    assert sentence in err
    assert (out, err.count("\n")) == ("", 1)


def test_it_refuses_selection_on_the_test_split(golden, capsys):
    assert main([*golden, "--selection-split", "test"]) == 1
    assert "Settings were selected on the test split" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_a_sentence(golden, tmp_path, capsys):
    assert main([*golden, "--output", str(tmp_path)]) == 1
    assert f"{tmp_path} cannot be written: Is a directory." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "one of the arguments --qrels --dataset is required"),
        (["--qrels", "q", "--output", "o"], "need --dataset"),
        (["--qrels", "q", "--evaluation-split", "test"], "need --dataset"),
        (["--qrels", "q", "-m", "RR", "-k", "5"], "-m cannot be used with -k"),
        (["--dataset", "d", "-m", "RR", "--summary", "s"], "-m cannot be used with -k"),
        (["--qrels", "q", "-k", "0"], "-k takes different cutoffs from 1 to 1,000,000"),
        (["--qrels", "q", "-k", "5", "5"], "-k takes different cutoffs from 1 to 1,000,000"),
        (["--qrels", "q", "--order-by", "rank"], "--order-by is only for a Flowbaby run.json"),
        (["--qrels", "q", "--profile", "fancy"], "invalid choice: 'fancy'"),
    ],
)
def test_wrong_usage_is_status_2(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--run", "bm25.run"])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def imported_by(*command):
    """Run Python with a setting that no site could start with; return what it says, and the modules that it imports."""
    watched = [sys.executable, "-X", "importtime", *command]
    process = subprocess.run(watched, cwd=ROOT, capture_output=True, text=True, env={"DATABASE_URL": "nonsense"})
    answers = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return process.stdout, {line.rpartition("|")[2].strip() for line in answers}


@pytest.mark.parametrize("command", [["-m", "benchbench"], ["manage.py"]])
def test_it_runs_without_django(trec, command):
    answer, modules = imported_by(*command, "score", *trec, "-m", "RR", "--json")
    assert json.loads(answer)["measures"] == {"RR": 0.5}
    imported = {name.partition(".")[0] for name in modules}
    assert "numpy" in imported
    assert not imported & {"django", "ir_measures", "scipy", "psycopg", "redis", "torch"}


def test_it_starts_about_as_fast_as_numpy(trec):
    """At most .2 s more is promised. Counted in modules, as seconds are longer on a busy machine."""
    _, ours = imported_by("-m", "benchbench", "score", *trec, "-m", "nDCG@10")
    _, numpy = imported_by("-c", "import numpy")
    assert "benchbench.scoring.measuring" in ours
    assert {name.partition(".")[0] for name in ours - numpy} - sys.stdlib_module_names == {"benchbench", "numpy"}
    assert len(ours - numpy) < 150


def test_the_console_script_is_the_same_command():
    import tomllib
    from importlib import import_module

    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["benchbench"]
    module, _, function = script.partition(":")
    assert callable(getattr(import_module(module), function))
