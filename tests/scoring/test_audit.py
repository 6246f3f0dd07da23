"""`benchbench audit`: figures and verdicts that score, SciPy, ir_measures and the product also give, and faults."""

import json
import math
import random
import resource

import ir_measures
import numpy as np
import pytest
from scipy import stats

from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import ensure_dataset
from apps.experiments.external.importing import NewBenchmark, import_runs
from apps.records.models import Evaluation
from apps.verdicts.comparing import compare_runs
from apps.verdicts.coverage import load_coverage
from apps.verdicts.sentences import describe_family
from benchbench.ir.statistics.wording import describe_verdict
from benchbench.scoring.audit import main
from benchbench.scoring.command import main as score
from tests.files.samples import write_file

BAD_QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 -1\nq3 0 d9 7\nq4 0 d1 1\n"
BAD_RUN = (
    "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.5 t\nq1 Q0 q1 3 0.9 t\n"  # a tie, a self-match, a score that rises
    "q2 Q0 d3 1 3 t\nq2 Q0 new 2 2 t\nq2 Q0 d3 3 1 t\n"  # a repeated document
    "q3 Q0 d9 x 1 t\nq9 Q0 d1 1 1 t\n"
)
GOOD_RUN = "".join(f"q{number} Q0 {document} 1 1 t\n" for number, document in enumerate(["d1", "d3", "d9", "d1"], 1))


def write_runs(folder, queries, abilities=(0.7, 0.5)):
    """Write judgments with grades 0 to 2, of 12 of 20 documents, and a run for each ability, better if higher."""
    rng = random.Random(queries)
    grades = {f"q{number}": {f"d{item}": rng.randrange(3) for item in range(12)} for number in range(queries)}
    lines = [f"{query} 0 {item} {grade}\n" for query, judged in grades.items() for item, grade in judged.items()]
    paths = [write_file(folder / "qrels.txt", "".join(lines))]
    for number, ability in enumerate(abilities):
        lines = []
        for query, judged in grades.items():
            scored = {f"d{item}": ability * judged.get(f"d{item}", 1) + rng.gauss(0, 1) for item in range(20)}
            best = sorted(scored.items(), key=lambda pair: -pair[1])[:15]
            lines += [f"{query} Q0 {item} {rank} {value:.6f} t\n" for rank, (item, value) in enumerate(best, 1)]
        paths.append(write_file(folder / f"run{number}.run", "".join(lines)))
    return paths


def audited(capsys, paths, *options):
    qrels, *runs = map(str, paths)
    assert main([*runs, "--qrels", qrels, *options, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_means_are_those_of_score_and_ir_measures(tmp_path, capsys):
    paths = write_runs(tmp_path, 40)
    answer = audited(capsys, paths, "-m", "nDCG@10", "RR", "AP")
    assert [run["run"] for run in answer["runs"]] == ["run0.run", "run1.run"]
    qrels = list(ir_measures.read_trec_qrels(str(paths[0])))
    judged = {(qrel.query_id, qrel.doc_id) for qrel in qrels}
    for path, run in zip(paths[1:], answer["runs"], strict=True):
        assert score(["--qrels", str(paths[0]), "--run", str(path), "-m", "nDCG@10", "RR", "AP", "--json"]) == 0
        assert run["means"] == json.loads(capsys.readouterr().out)["measures"]
        results = list(ir_measures.read_trec_run(str(path)))
        condensed = [one for one in results if (one.query_id, one.doc_id) in judged]
        measures = [ir_measures.parse_measure(name) for name in ("nDCG@10", "RR", "AP", "Judged@10")]
        theirs = ir_measures.calc_aggregate(measures, qrels, results)
        assert [*run["means"].values(), run["judged"]] == pytest.approx([theirs[one] for one in measures])
        (of_condensed,) = ir_measures.calc_aggregate(measures[:1], qrels, condensed).values()
        assert run["condensed"] == pytest.approx(of_condensed)
        assert run["lower_bound"] <= run["means"]["nDCG@10"] <= run["upper_bound"]


def per_query(paths):
    """Return nDCG@10 of each query by ir_measures, (runs, queries)."""
    qrels = list(ir_measures.read_trec_qrels(str(paths[0])))
    rows = []
    for path in paths[1:]:
        results = ir_measures.iter_calc([ir_measures.nDCG @ 10], qrels, ir_measures.read_trec_run(str(path)))
        rows.append([value for _, value in sorted((one.query_id, one.value) for one in results)])
    return np.array(rows)


def test_p_is_that_of_scipys_sign_flips(tmp_path, capsys):
    """With ten queries all patterns of signs are used; one pair needs no family."""
    paths = write_runs(tmp_path, 10, (1.0, 0.5))
    (pair,) = audited(capsys, paths)["pairs"]
    first, second = per_query(paths)
    test = stats.permutation_test((first - second,), np.mean, permutation_type="samples", n_resamples=np.inf)
    tested = pair["statistics"]
    assert tested["p_adjusted"] == pytest.approx(test.pvalue)
    assert tested["p_t"] == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert tested["difference"] == pytest.approx(float((first - second).mean()))
    assert (tested["wins"], tested["losses"]) == (int((first > second).sum()), int((first < second).sum()))
    assert pair["attainable_p"] == 2 ** (1 - tested["wins"] - tested["losses"]) <= tested["p_adjusted"]


@pytest.mark.django_db
@pytest.mark.parametrize("abilities", [(0.7, 0.5), (0.6, 0.55, 0.2)])
def test_verdict_is_that_of_the_product(tmp_path, capsys, abilities):
    paths = write_runs(tmp_path, 40, abilities)
    answer = audited(capsys, paths)
    queries = write_file(tmp_path / "queries.txt", "".join(f"q{number}\tQuery {number}\n" for number in range(40)))
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    write_beir(folder, paths[0], queries)
    dataset = ensure_dataset(read_dataset(folder), name="audited", source="a test").version.dataset
    benchmark = import_runs(paths[1:], dataset=dataset, new=NewBenchmark(k=[10])).benchmark
    runs = list(benchmark.runs.order_by("run_order"))
    comparison = compare_runs(runs, measure="nDCG@10")
    assert answer["verdict"] == describe_verdict(comparison.verdict, [path.name for path in paths[1:]])
    assert answer["notes"][-1] == describe_family(comparison)
    assert len(answer["pairs"]) == len(comparison.comparison.pairs)
    for tested in (pair["statistics"] for pair in answer["pairs"]):
        expected = comparison.comparison.get_pair(tested["first"], tested["second"])
        assert tested["p_adjusted"] == expected.p_adjusted
        assert tested["difference"] == pytest.approx(expected.difference)
        assert tested["detectable"] == pytest.approx(expected.detectable)
    by_name = {run["run"]: run for run in answer["runs"]}
    for run, path in zip(runs, paths[1:], strict=True):
        (row,) = (row for row in load_coverage(Evaluation.objects.get(run=run)) if row.name == "nDCG@10")
        figures = by_name[path.name]
        for name in ("judged", "condensed", "lower_bound", "upper_bound"):
            assert figures[name] == pytest.approx(getattr(row, name)), name


def write_beir(folder, qrels, queries):
    judged = [line.split() for line in qrels.read_text().splitlines()]
    rows = "".join(f"{query}\t{item}\t{grade}\n" for query, _, item, grade in judged)
    write_file(folder / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{rows}")
    texts = (line.split("\t") for line in queries.read_text().splitlines())
    write_file(folder / "queries.jsonl", "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts))


def test_faults_of_the_files_are_counted(tmp_path, capsys):
    paths = [write_file(tmp_path / name, text) for name, text in [("qrels.txt", BAD_QRELS), ("bad.run", BAD_RUN)]]
    answer = audited(capsys, [*paths, write_file(tmp_path / "good.run", GOOD_RUN)], "--top-grade", "3")
    assert [(fault["kind"], fault["file"], fault["count"], fault["total"]) for fault in answer["faults"]] == [
        ("no_relevant", "qrels.txt", 1, 4),
        ("grades", "qrels.txt", 2, 5),
        ("no_results", "bad.run", 1, 4),
        ("no_judgments", "bad.run", 1, 4),
        ("never_judged", "bad.run", 2, 6),
        ("self_matches", "bad.run", 1, 3),
        ("duplicates", "bad.run", 1, 3),
        ("ties", "bad.run", 2, 7),
        ("ranks", "bad.run", 1, 3),
    ]
    assert answer["faults"][1]["sentence"] == "qrels.txt: 2 of 5 grades are outside 0 to 3 (-1, 7)."
    assert answer["faults"][7]["sentence"] == (
        "bad.run: 2 of 7 results (28.6 %, in 1 query) have the score of another one, so ids decide their order."
    )
    lost = write_file(tmp_path / "lost.run", GOOD_RUN.replace(" d", " x"))
    faults = audited(capsys, [paths[0], lost, tmp_path / "good.run"])["faults"]
    assert "do both files use the same ids?" in next(one["sentence"] for one in faults if one["kind"] == "never_judged")


def test_flowbaby_runs_are_audited_too(tmp_path, capsys):
    entries = [("q1", "d1", 1, 0.5), ("q1", "d2", 2, 0.9)]
    names = ("query_id", "canonical_item_id", "rank", "score")
    run = {"run_id": "r", "entries": [dict(zip(names, entry, strict=True)) for entry in entries]}
    paths = [write_file(tmp_path / "qrels.txt", BAD_QRELS), write_file(tmp_path / "run.json", run)]
    answer = audited(capsys, [*paths, write_file(tmp_path / "good.run", GOOD_RUN)])
    assert {fault["kind"] for fault in answer["faults"] if fault["file"] == "run.json"} == {"no_results", "ranks"}


def test_reports_say_verdict_limits_and_faults(tmp_path, capsys):
    qrels, *runs = map(str, write_runs(tmp_path, 40))
    assert main([*runs, "--qrels", qrels]) == 0
    report = capsys.readouterr().out
    assert report.startswith("run0.run ")
    assert all(len(line) <= 140 for line in report.splitlines())
    assert {"Judged@10", "condensed", "least p", "detectable"} <= set(report.replace("  ", "\n").split("\n"))
    assert main([*runs, "--qrels", qrels, "--baseline", runs[1], "--format", "markdown"]) == 0
    report = capsys.readouterr().out
    assert report.startswith("## Against the baseline run1.run: run0.run is ")
    assert "\n| run | nDCG@10 | Judged@10 |" in report


def test_text_shows_the_pairs_of_the_best_run(tmp_path, capsys):
    qrels, *runs = map(str, write_runs(tmp_path, 30, (0.2, 0.9, 0.5, 0.4)))
    assert main([*runs, "--qrels", qrels]) == 0
    report = capsys.readouterr().out
    assert report.count(" − ") == 3
    assert report.count("  run1.run − run") == 3
    answer = audited(capsys, [qrels, *runs])
    assert len(answer["pairs"]) == 6
    assert all(pair["statistics"]["difference"] >= 0 for pair in answer["pairs"])


def test_two_means_alone_support_no_verdict(capsys):
    assert main(["--values", "0.71", "0.69", "--queries", "50", "--format", "json"]) == 0
    support = json.loads(capsys.readouterr().out)
    spread = support["significant_spread"]
    assert 2 * stats.t.sf(0.02 / (spread / math.sqrt(50)), 49) == pytest.approx(0.05)
    ones = np.zeros((2, 100))
    ones[0, :71], ones[1, 31:] = 1, 1  # they disagree as often as they can
    difference = np.repeat(ones[0] - ones[1], 100)
    assert support["greatest_spread"] == pytest.approx(difference.std() * math.sqrt(50 / 49), abs=0.01)
    power = 1 - stats.norm.cdf(1.96 - support["detectable"]["0.2"] / (0.2 / math.sqrt(50)))
    assert power == pytest.approx(0.8, abs=1e-3)
    assert support["queries_needed"]["0.2"] == math.ceil((2.8016 * 0.2 / 0.02) ** 2)
    assert support["attainable_p"] == 1 / 10_001
    assert main(["--values", "0.71", "0.69", "--queries", "50"]) == 0
    assert capsys.readouterr().out.startswith("Two means that differ by .0200 over 50 queries support no verdict.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("run0.run --qrels qrels.txt", 1, "give two run files or more"),
        ("run0.run run0.run --qrels qrels.txt", 1, "the same name"),
        ("run0.run run1.run --qrels qrels.txt --baseline c.run", 1, "'c.run' is not among the runs"),
        ("run0.run run1.run --qrels qrels.txt -m FirstRelevant", 1, "falls as a run improves"),
        ("run0.run run1.run --qrels none.txt", 1, "none.txt"),
        ("run0.run run1.run --qrels qrels.txt -m Nonsense", 2, "Nonsense"),
        ("run0.run run1.run", 2, "need --qrels"),
        ("--values 1 2", 2, "--values and --queries"),
        ("--values 1 2 --queries 1", 1, "at least 2 queries"),
    ],
)
def test_wrong_usage_is_explained(tmp_path, capsys, monkeypatch, arguments, status, message):
    write_runs(tmp_path, 5)
    monkeypatch.chdir(tmp_path)
    try:
        ended = main(arguments.split())
    except SystemExit as exit:
        ended = exit.code
    assert (ended, message in capsys.readouterr().err) == (status, True)


def test_first_verdict_takes_less_than_five_seconds(tmp_path, scoring_python):
    """Of the processor, so that a busy machine does not count."""
    from tests.wheel import run

    qrels, *runs = map(str, write_runs(tmp_path, 300))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = run(scoring_python, "-m", "benchbench", "audit", *runs, "--qrels", qrels, cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, process.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
