"""Runs made elsewhere: measured as `score` measures their files, treated as any other, and exported again."""

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Query
from apps.experiments.external.importing import import_runs
from apps.experiments.external.reports import read_for
from apps.mappings.models import Mapping
from apps.records.comparability import find_differences
from apps.records.models import Benchmark, Evaluation, Run
from apps.results.exporting import export
from apps.results.triage.queries import load_evaluation
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.files.flowbaby import render_run
from benchbench.files.runs import read_run_file
from benchbench.ir.canonical import RunEntry
from benchbench.ir.measures import Measure
from benchbench.scoring.measuring import read_results, read_truth, score
from tests.benchmarks.imported import QRELS, RUN, imported, means_of, stored, write
from tests.datasets.tool_samples import SNAPSHOT
from tests.factories import add_version, make_dataset
from tests.files.samples import write_file

pytestmark = pytest.mark.django_db


def scored(qrels: Path, run: Path, benchmark: Benchmark) -> dict[str, float]:
    truth = read_truth(qrels)
    measures = [Measure.parse(name) for name in benchmark.measures]
    means = score(truth, read_results(run, truth).rankings, measures).means.tolist()
    return dict(zip(benchmark.measures, means, strict=True))


def test_it_stores_the_ranks_and_means_of_score(dataset, run_file, tmp_path):
    importing = imported(dataset, run_file, name="elsewhere", measures=["Rprec"], k=[1, 3])
    ((run, report),) = importing.runs
    assert stored(run) == {"q1": ["c", "b", "a", "f", "e"], "q2": [], "q3": ["d", "c", "a"]}
    assert means_of(run) == scored(write(tmp_path / "qrels", QRELS), run_file, importing.benchmark)
    assert (report.answered, report.missing, report.unknown, report.tied) == (2, 1, 1, 2)
    assert (report.results, report.documents, report.tags) == (8, 6, ("bm25",))
    assert (importing.benchmark.name, importing.benchmark.k_values, importing.benchmark.total_runs) == (
        "elsewhere",
        [1, 3, 10],
        1,
    )
    assert (run.label, run.status, run.is_external, run.timing, run.index) == ("bm25", "completed", True, {}, None)
    assert run.provenance["file"]["format"] == "trec"
    assert len(run.provenance["file"]["sha256"]) == 64
    assert "python" in run.provenance["file"]["imported_by"]


def test_a_quepid_snapshot_is_dataset_and_run(tmp_path):
    path = write_file(tmp_path / "snapshot.json", SNAPSHOT)
    record = import_dataset(read_dataset(path), name="quepid").version
    ((run, report),) = imported(record.dataset, path, measures=["RR"]).runs
    assert stored(run) == {"projector screen": ["b", "a"], "notebook": []}
    assert (run.label, report.format, report.answered, report.missing) == ("no-vector", "quepid", 1, 1)
    assert means_of(run)["RR"] == 0.25, "the only relevant document found is second, in one of two queries"


def test_undecodable_tags_are_shown_with_replacement_characters(dataset, tmp_path):
    lines = [b"q1 Q0 a 1 0.5 mi\0ne\n", b"q3 Q0 a 1 0.5 \xffours\n"]
    (tmp_path / "b.run").write_bytes(b"".join(lines))
    ((run, report),) = imported(dataset, tmp_path / "b.run").runs
    assert run.provenance["file"]["tags"] == ["mi\ufffdne", "\ufffdours"] == list(report.tags)
    (tmp_path / "c.run").write_bytes(lines[0])
    assert imported(dataset, tmp_path / "c.run").runs[0][0].label == "mi\ufffdne"


def test_trec_eval_reproduces_values_of_an_exported_run(dataset, run_file):
    importing = imported(dataset, run_file)
    exported = "".join(map(str, export(importing.runs[0][0], "trec-run")))
    qrels = pytrec_eval.parse_qrel(io.StringIO("".join(map(str, export(importing.benchmark, "trec-qrels")))))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "ndcg_cut_10"}).evaluate(
        pytrec_eval.parse_run(io.StringIO(exported))
    )
    evaluation: Any = load_evaluation(importing.runs[0][0])
    keys = dict(Query.objects.values_list("pk", "key"))
    for ours, name in (("AP", "map"), ("RR", "recip_rank"), ("nDCG@10", "ndcg_cut_10")):
        values = evaluation.values[evaluation.measures.index(ours)]
        for query_id, value in zip(evaluation.query_ids, values, strict=True):
            assert theirs.get(keys[query_id], {}).get(name, 0.0) == pytest.approx(value, abs=1e-12)


def test_score_and_import_agree_on_scifact(shared_data, tmp_path):
    """A generated run with many ties over the real judgments."""
    source = shared_data / "scifact"
    call_command("import_dataset", source, name="scifact", format="beir")
    dataset = Dataset.objects.get()
    qrels = source / "qrels" / "test.tsv"
    truth = read_truth(qrels)
    documents = sorted({document.decode() for judged in truth.values() for document in judged})
    lines = [
        f"{query} Q0 {documents[(index * 37 + number * 11) % len(documents)]} 1 {1 / (1 + number % 23):.2f} made\n"
        for index, query in enumerate(list(truth)[:-3])
        for number in range(100)
    ]
    path = write(tmp_path / "made.run", "".join(lines))
    importing = imported(dataset, path)
    assert means_of(importing.runs[0][0]) == scored(qrels, path, importing.benchmark)
    assert importing.runs[0][1].missing == 3


def test_judgments_without_an_id_use_their_resolving_value(tmp_path):
    digest = "A" * 64
    dataset = make_dataset(
        {
            "q1": [
                ({"uri": "file:///a.md"}, 1),
                ({"path": "file:///b.md", "file_name": "b.md"}, 1),
                ({"file_name": "c.md"}, 1),
                ({"content_hash": digest}, 1),
                ({"document_id": "x" * 501}, 1),
                ({"document_id": ""}, 1),
            ]
        }
    )
    lines = "".join(f"q1 Q0 {name} 1 1 t\n" for name in ("file:///a.md", "file:///b.md", "c.md", digest.lower()))
    importing = imported(dataset, write(tmp_path / "a.run", lines))
    mapping = importing.benchmark.mapping
    assert (mapping.mapped_count, mapping.total_count) == (4, 6)
    assert means_of(importing.runs[0][0])["P@5"] == 4 / 5
    assert means_of(importing.runs[0][0])["R@10"] == 4 / 6


def test_runs_gather_in_one_benchmark_and_none_twice(dataset, run_file, tmp_path):
    importing = imported(dataset, run_file, write(tmp_path / "other.run.gz", "q1 Q0 new 1 1 bm25\n"))
    assert [run.label for run, _ in importing.runs] == ["bm25", "bm25 (other)"]
    third = imported(
        dataset, write(tmp_path / "c.run", "q2 Q0 a 1 1 x\nq2 Q0 b 1 0 y\n"), benchmark=importing.benchmark
    )
    assert [(r.run_order, r.label) for r in third.benchmark.runs.all()] == [(1, "bm25"), (2, "bm25 (other)"), (3, "c")]
    assert third.benchmark.total_runs == 3
    with pytest.raises(ConflictError, match=r'has the same rankings as run 1, "bm25", .*: nothing was imported'):
        imported(dataset, run_file, benchmark=importing.benchmark)
    renamed = write(tmp_path / "renamed.run", RUN.replace("bm25", "other-tag"))
    with pytest.raises(ConflictError, match=r"renamed\.run has the same rankings"):
        imported(dataset, renamed, benchmark=importing.benchmark)
    assert Run.objects.count() == 3
    assert Collection.objects.count() == Mapping.objects.count() == 1
    assert not find_differences(list(third.benchmark.runs.all())).refusals


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("q1 Q0 a 1 2 x\nq1 Q0 a 2 1 x\n", "line 2, ranks the document 'a'"),
        ("x9 Q0 a 1 2 x\n", r"answers no query of questions v1, only 1 query with other keys \(x9\)"),
        (f"q1 Q0 {'a' * 501} 1 2 x\n", "more than 500 characters"),
        ("q1 0 a 1\n", "does not look like a run"),
    ],
)
def test_bad_input_is_refused(dataset, run_file, tmp_path, content, sentence):
    with pytest.raises(BenchbenchError, match=sentence):
        imported(dataset, run_file, write(tmp_path / "bad.run", content))
    assert not Collection.objects.exists()
    assert not Benchmark.objects.exists()


def test_invalid_import_requests_are_rejected(dataset, run_file, tmp_path):
    importing = imported(dataset, run_file)
    second = make_dataset({"q1": [({"document_id": "a"}, 1)]}, name="others")
    draft = add_version(dataset, frozen=False)
    with pytest.raises(BenchbenchError, match="is measured on questions v1"):
        imported(second, run_file, benchmark=importing.benchmark)
    with pytest.raises(BenchbenchError, match="already has a name and measures"):
        imported(dataset, run_file, benchmark=importing.benchmark, k=[3])
    with pytest.raises(BenchbenchError, match="is not a frozen version"):
        imported(dataset, run_file, version=draft)
    with pytest.raises(BenchbenchError, match="every cutoff must be from 1 to 1,000,000"):
        imported(dataset, run_file, k=[0])
    with pytest.raises(BenchbenchError, match="the measure 'nonsense' does not exist"):
        imported(dataset, run_file, measures=["nonsense"])
    with pytest.raises(BenchbenchError, match="at least one file"):
        imported(dataset)


def test_import_command(dataset, run_file, tmp_path, capsys):
    call_command("import_run", run_file, dataset="questions", name="spring", measures=["ERR@10"], k=[2])
    out, err = capsys.readouterr()
    assert "bm25.run (TREC run): 8 results, 6 documents, for 2 of 3 queries." in out
    assert "spring: completed" in out
    assert "Judged queries that bm25.run lacks, counted as 0: 1." in err
    assert "left out: 1 of 3 (q9)." in err
    assert "counted as not relevant: 3 of 6 (d, e, f)." in err
    assert "equal scores, ordered by id, descending: 2." in err
    second = write(tmp_path / "other.run", "q1 Q0 a 1 1 x\n")
    call_command("import_run", second, dataset="questions", benchmark="spring", dataset_version=1, json=True)
    facts = json.loads(capsys.readouterr().out)
    assert [run["label"] for run in facts["runs"]] == ["bm25", "x"]
    assert facts["imported"][0]["missing"] == 2
    assert Benchmark.objects.get().measures[:2] == ["nDCG@2", "nDCG@10"]


def test_command_reports_the_problem(dataset, run_file):
    with pytest.raises(CommandError, match="The dataset 'x' was not found; choose one of questions"):
        call_command("import_run", run_file, dataset="x")
    with pytest.raises(CommandError, match="has no version 7; its versions: 1"):
        call_command("import_run", run_file, dataset="questions", dataset_version=7)
    with pytest.raises(CommandError, match=r"absent\.run cannot be read"):
        call_command("import_run", "absent.run", dataset="questions")


def test_white_space_is_refused_in_ids_alone(dataset, tmp_path):
    version = dataset.versions.get()
    with pytest.raises(BenchbenchError, match=r"a\.run, line 1, can be read as a result for the document 'a b'"):
        read_for(version, write(tmp_path / "a.run", "q1 Q0 a b 1 0.9 x\nq1 Q0 c 2 0.8 x\n"))
    tagged = read_for(version, write(tmp_path / "b.run", "q1 Q0 a 1 0.9 my tag\nq1 Q0 c 2 0.8 my tag\n"))[1]
    plain = read_for(version, write(tmp_path / "c.run", "q1 Q0 a 1 0.9 tag\nq1 Q0 c 2 0.8 tag\n"))[1]
    assert [note.replace("b.run", "c.run") for note in tagged.list_notes()] == list(plain.list_notes())
    assert tagged.tags == ("my tag",)


def test_a_preview_counts_and_keeps_nothing(dataset, run_file):
    report = read_for(dataset.versions.get(), run_file)[1]
    assert (report.answered, report.missing, report.unknown) == (2, 1, 1)
    assert not Collection.objects.exists()


def test_imported_run_keeps_its_id_in_flowbaby_files(dataset, tmp_path):
    entries = [{"query_id": "q1", "canonical_item_id": "a", "rank": 1, "score": 1.0}]
    path = write(tmp_path / "run.json", json.dumps({"run_id": "baseline-2025-01-18", "entries": entries}))
    ((run, _),) = imported(dataset, path, name="elsewhere").runs
    for format in ("flowbaby-run", "flowbaby-summary-1.1"):
        assert json.loads("".join(map(str, export(run, format))))["run_id"] == "baseline-2025-01-18"


QUERIES = ("q1", "q2", "é")
# Ids that sort differently as text, as bytes of UTF-8 and as UTF-16, and of which one begins another.
DOCUMENTS = ("d1", "d10", "d2", "D1", "é", "文書", "～", "😀", "-", "MED-1")
# Scores that are equal, equal as float32 alone, beyond float32, below its least; falling as doubles.
SCORES = (1e300, 2e39, 1e39, 16777217.0, 16777216.0, 1.00000001, 1.0, 1.0, 0.5, 1e-46, 0.0, -0.0, -7.25, -1e300)


def trec(seed: int) -> str:
    """Lines of all queries, mixed, with ranks that say nothing."""
    draw = random.Random(seed)
    lines = [
        f"{query} Q0 {document} {draw.randint(1, 9)} {draw.choice(SCORES)!r} made\n"
        for query in (*QUERIES, "unknown")
        for document in draw.sample(DOCUMENTS, draw.randint(1, len(DOCUMENTS)))
    ]
    draw.shuffle(lines)
    return "".join(lines)


def flowbaby(seed: int) -> str:
    """Entries whose ranks and scores agree, of all queries, mixed."""
    draw = random.Random(seed)
    entries = []
    for query in (*QUERIES, "unknown"):
        items = draw.sample(DOCUMENTS, draw.randint(1, len(DOCUMENTS)))
        scores = sorted((draw.choice(SCORES) for _ in items), reverse=True)
        entries += map(RunEntry, [query] * len(items), items, range(1, len(items) + 1), scores)
    draw.shuffle(entries)
    return "".join(render_run("made", entries))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("format", "name", "expected"), [("trec-run", "a.run", trec), ("flowbaby-run", "b.json", flowbaby)]
)
def test_the_rankings_are_the_same(format, name, expected, tmp_path):
    dataset = make_dataset({key: [({"document_id": "d1"}, 1), ({"document_id": "é"}, 2)] for key in QUERIES})

    def declared(path: Path) -> dict[str, list[str]]:
        return {query: list(ranked.documents) for query, ranked in read_run_file(path, QUERIES).rankings.items()}

    for seed in range(5):
        first = write_file(tmp_path / name, expected(seed))
        ((run, _),) = import_runs([first], dataset=dataset).runs
        second = write_file(tmp_path / f"again {name}.gz", "".join(map(str, export(run, format))))
        assert declared(second) == declared(first)
        assert len(declared(first)) == len(QUERIES)
        ((again, _),) = import_runs([second], dataset=dataset).runs
        one, another = (Evaluation.objects.get(run=each) for each in (run, again))
        assert one.means == another.means
