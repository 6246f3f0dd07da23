"""Every format of results: a golden file each, and what the tools that read them make of them."""

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from asgiref.sync import async_to_sync
from django.db.models import Value
from django.db.models.functions import Concat
from django.test import AsyncClient
from django.urls import reverse

from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.mappings.truth import TruthError
from apps.records.lists.reading import load_rankings
from apps.records.models import Benchmark, Evaluation, Run
from apps.results.exporters import outcomes
from apps.results.exporters.documents import render_text
from apps.results.exporters.outcomes import ExportError
from apps.results.exporters.scatter import Point, draw_scatter
from apps.results.exporters.tables import FIGURE_COLUMNS, format_scores
from apps.results.exporting import EXPORTERS, export, export_to
from apps.results.templatetags.benchbench import interval, signed
from apps.results.triage.queries import load_evaluation
from apps.verdicts.comparing import compare_runs
from apps.verdicts.describing import add_queries, compare_slices, list_differences
from benchbench.files.runs import read_run_file
from benchbench.files.tables import cell, plain
from benchbench.files.trec import read_run
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.factories import make_benchmark
from tests.files.workbook_reader import read_workbook
from tests.results.exported import HOSTILE, export_text, subject_of

GOLDEN = Path(__file__).parent / "golden"
WORKBOOKS = {"xlsx", "xlsx-queries", "xlsx-run"}
IN_PARTS = {"html", "strategy", *WORKBOOKS}  # a page and workbooks, tested below; a zip: test_exporting_strategy


def replace_ids(text: str, benchmark: Benchmark) -> str:
    """Return the text with ids, which are drawn again each time, told by what they are of."""
    text = text.replace(str(benchmark.pk), "<benchmark>")
    for run in benchmark.runs.all():
        text = text.replace(str(run.pk), f"<run {run.run_order}>")
    for judgment in benchmark.dataset_version.judgments.all():
        text = text.replace(f"unresolved:{judgment.pk}", "unresolved:<judgment>")
    return text


@pytest.mark.parametrize("format", sorted(EXPORTERS.keys() - IN_PARTS))
def test_export_matches_the_golden_file(exported, format):
    """To write them again after a change that is meant: BENCHBENCH_WRITE_GOLDEN=1, and read the difference."""
    text = replace_ids(export_text(subject_of(exported, format), format), exported)
    golden = GOLDEN / f"{format}.{EXPORTERS[format].extension.rpartition('.')[2]}"
    if os.environ.get("BENCHBENCH_WRITE_GOLDEN"):
        golden.write_bytes(text.encode())
    assert text == golden.read_bytes().decode()


def test_a_failure_is_empty_and_never_0(exported):
    rows = list(csv.DictReader(io.StringIO(export_text(exported, "csv-queries"))))
    failed = [row for row in rows if row["status"] == "failed"]
    assert [(row["run_order"], row["query_key"], row["error"]) for row in failed] == [
        ("2", "q7", "The query took 60 s."),
        ("4", "", "The encoder is gone."),
    ]
    assert {row["nDCG@10"] for row in failed} == {""}


def test_batches_and_forgotten_names_change_no_export(exported, monkeypatch):
    formats = ("csv-queries", "trec-run", "flowbaby-run")
    expected = [export_text(subject_of(exported, format), format) for format in formats]
    monkeypatch.setattr(outcomes, "AT_ONCE", 3)
    monkeypatch.setattr(outcomes, "MOST_NAMES", -1)
    assert [export_text(subject_of(exported, format), format) for format in formats] == expected


@pytest.fixture(scope="module")
def measured() -> dict[str, str]:
    """What trec_eval calls our measures."""
    return {"P@5": "P_5", "R@10": "recall_10", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "AP": "map"}


def test_trec_eval_finds_our_values_in_our_files(library, measured, tmp_path):
    """The keyword encoder gives many documents equal scores, which trec_eval would order otherwise."""
    benchmark = run_benchmark(
        library, name="modes", matrix={"search_modes": ["dense", "sparse", "hybrid"], "k_values_for_metrics": [5, 10]}
    )
    qrels = pytrec_eval.parse_qrel(io.StringIO(export_text(benchmark, "trec-qrels")))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(measured.values()))
    keys = dict(benchmark.dataset_version.queries.values_list("pk", "key"))
    names = dict(library.collection.documents.values_list("pk", "external_id"))
    for run in benchmark.runs.all():
        (tmp_path / "a.run").write_text(export_text(run, "trec-run"))
        read = {key: scored.rank() for key, scored in read_run(tmp_path / "a.run").items()}
        stored = {keys[query]: [names[one].encode() for one in ranked] for query, ranked in load_rankings(run).items()}
        assert read == {key: ranked for key, ranked in stored.items() if ranked}, "a round trip"
        result = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(export_text(run, "trec-run"))))
        evaluation: Any = load_evaluation(run)
        for name, theirs in measured.items():
            ours = evaluation.values[evaluation.measures.index(name)]
            for query_id, value in zip(evaluation.query_ids, ours, strict=True):
                assert result.get(keys[query_id], {}).get(theirs, 0.0) == pytest.approx(value, abs=1e-12)


def test_scores_fall_strictly_in_single_precision_for_trec_eval():
    import numpy as np

    for scores in ([0.5] * 1000, [1.0, 1 - 1e-12, 0.0, 0.0, -1e-300, -5.0], [1e300, 1e299, 3.0], [-1e300, -1e300], []):
        singles = np.array(format_scores(scores), np.float64).astype(np.float32)
        assert (singles[1:] < singles[:-1]).all()
        assert np.isfinite(singles).all()
    assert format_scores([0.75, 0.5]) == ["0.75", "0.5"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠A1"])
def test_no_cell_is_run_as_a_formula(text):
    assert cell(text) == f"'{text}"


def test_cells_keep_numbers_and_leave_missing_values_empty():
    assert [cell(one) for one in (-0.5, 0, None, "", "a=b", True, ["-1"])] == [-0.5, 0, "", "", "a=b", "True", "['-1']"]


def test_latex_marks_worse_runs_and_escapes_labels(exported):
    rows = [line for line in export_text(exported, "latex").splitlines() if line.startswith("top ")]
    assert all(re.search(r"(?<!\\)%", row) is None for row in rows), "the rest of a line would be a comment"
    Evaluation.objects.update(failed_queries=0)  # so few that the worse run is ranked
    worse = next(line for line in export_text(exported, "latex").splitlines() if line.startswith("top 20"))
    assert "0.4000$^\\dagger$" in worse


@pytest.mark.parametrize(("format", "dot"), [("html", "·"), ("markdown", "·"), ("latex", r"$\cdot$"), ("text", "·")])
def test_documents_give_the_full_name_of_each_run(exported, format, dot):
    exported.runs.update(label=Concat("label", Value(" · exact")))
    text = render_text(exported) if format == "text" else export_text(exported, format)
    for run in exported.runs.all():
        assert run.label.replace("·", dot) in text


def test_the_page_needs_nothing_from_elsewhere(exported):
    page = export_text(exported, "html")
    assert len(page) < 50_000
    assert "http" not in page.replace("http-equiv", "")
    assert "src=" not in page
    assert HOSTILE not in page
    assert "are not distinguishable" in page
    assert "The encoder is gone." in page


def test_the_page_has_the_comparison_and_rankings(exported):
    Evaluation.objects.update(failed_queries=0)  # so few that the worse run is ranked
    page = export_text(exported, "html")
    comparison = compare_runs(exported.runs.filter(status=Run.Status.COMPLETED))
    for run in (1, 2):
        pair = comparison.comparison.get_pair(run, comparison.reference)
        assert signed(pair.difference) in page
        assert interval(pair.simultaneous) in page
    for row in compare_slices(comparison):
        assert row.slice.name in page
    gaps = [gap for gap in list_differences(comparison, 2) if gap.difference]
    keys = [query.query.key for query in add_queries(gaps) if query.query]
    assert re.findall(r"<small>(q\d)</small></h3>", page) == keys
    assert len(re.findall(r'class="grade"\s*>2</span>On pears', page)) == 2 * len(keys)
    Mapping.objects.update(dataset_version=None)
    assert "No verdict:" in export_text(Benchmark.objects.get(pk=exported.pk), "html")


def test_documents_compare_the_best_of_too_many_runs(exported, monkeypatch):
    for module in ("verdicts.describing", "results.exporters.documents"):
        monkeypatch.setattr(f"apps.{module}.MOST_RUNS", 2)
    Evaluation.objects.update(failed_queries=0)  # so few that the worse run is ranked
    for format in ("html", "markdown"):
        page = export_text(exported, format)
        assert "so 1 lower-ranked run had to be left out" in page
        assert "No verdict" not in page


def test_far_apart_times_have_round_ticks():
    points = [Point(ms, quality, 1, "", "") for ms, quality in ((2.0, 0.25), (900.0, 0.75))]
    scatter = draw_scatter(points)
    assert scatter
    assert [text for _, text in scatter.columns] == ["2", "5", "10", "20", "50", "100", "200", "500", "1000"]
    assert [text for _, text in scatter.rows] == ["0.3", "0.4", "0.5", "0.6", "0.7"]
    assert scatter.dots[0].x == scatter.columns[0][0]
    assert draw_scatter([]) is None


def test_csv_has_percentiles_approximation_and_load(exported):
    run = exported.runs.get(run_order=1)
    run.timing |= {
        "percentiles": {"search_ms": {"p50": 1.5, "p95": 2.5}, "total_ms": {"p50": 3.5, "p95": 4.5, "p99": 5.5}},
        "open_loop": {
            "offered": 50.0,
            "achieved": 48.5,
            "unsent": 2,
            "latency_ms": {"p50": 6.5, "p95": 7.5, "p99": 8.5},
        },
    }
    loss = {"measure": "nDCG@10", "approximate": 0.8, "exact": 0.81, "cost": 0.01}
    recalls = [{"k": k, "mean": mean} for k, mean in ((10, 0.9), (100, 0.7))]
    losses = {run.evaluations.get().truth_hash: loss}
    run.provenance |= {"ann": {"bytes": 4096, "recall": recalls, "losses": losses, "ndcg": loss}}
    run.save()
    row, second, *_ = csv.DictReader(io.StringIO(export_text(exported, "csv")))
    figures = {name: row[name] for name in FIGURE_COLUMNS}
    assert list(figures.values()) == [
        *("1.5", "2.5", "", "3.5", "4.5", "5.5", "0.9", "0.7", "0.01", "4096", "50.0", "48.5", "2", "6.5", "7.5", "8.5")
    ]
    assert {second[name] for name in FIGURE_COLUMNS} == {""}


def test_impossible_export_raises_an_explanation(exported):
    with pytest.raises(ExportError, match=r"csv exports a benchmark\. For a run choose one of csv-run, xlsx-run,"):
        export(exported.runs.get(run_order=1), "csv")
    with pytest.raises(ExportError, match=r"The format 'xml' does not exist\. For a benchmark choose one of json"):
        export(exported, "xml")
    with pytest.raises(ExportError, match=r"is failed and has nothing to export: The encoder is gone\."):
        export_text(exported.runs.get(run_order=4), "trec-run")
    with pytest.raises(ExportError, match='"on the way" is running: export it once it has ended'):
        export(make_benchmark(exported.mapping, name="on the way", status="running"), "json")
    exported.mapping.dataset_version = None
    with pytest.raises(TruthError, match="is pending: resolve it first"):
        export_text(exported.runs.get(run_order=4), "spec-002")


def test_whitespace_in_an_id_is_rejected(exported):
    exported.mapping.collection.documents.filter(external_id="d1").update(external_id="my notes.md")
    with pytest.raises(ExportError, match=r"The document id 'my notes\.md' has white space"):
        export_text(exported.runs.get(run_order=1), "trec-run")


def test_id_with_non_separating_whitespace_is_exported(exported, tmp_path):
    exported.mapping.collection.documents.filter(external_id="d1").update(external_id="d\u00a01")
    path = export_to(exported.runs.get(run_order=1), "trec-run", tmp_path / "a.run")
    assert "d\u00a01" in read_run_file(path, {"q0"}).rankings["q0"].documents


def test_spec_002_file_has_own_ids_versions_and_limit(exported, tmp_path):
    for index, key in enumerate(["-5", "7", "07", "٧"]):
        exported.dataset_version.queries.filter(key=f"q{index}").update(key=key)
    Query.objects.filter(key="-5").update(metadata={"version": [16, "17.0"]})
    run = exported.runs.get(run_order=1)
    run.config["top_k"] = 2  # of which ten cannot be looked at
    run.save(update_fields=["config"])
    path = export_to(run, "spec-002", tmp_path)
    assert path.name == "baseline_20260301_120002.json"
    content = json.loads(path.read_text())
    assert [one["query_id"] for one in content["detailed_results"]][:4] == [-5, 7, "07", "٧"]
    assert content["detailed_results"][0]["version"] == ["16", "17.0"], "texts, so that the console can join them"
    assert content["metadata"]["limit"] == 2


def test_flowbaby_summary_names_the_code_of_the_run(exported):
    exported.runs.filter(run_order=1).update(provenance={"made_by": [{"git_revision": "abc"}, {"git_revision": "abc"}]})
    exported.runs.filter(run_order=3).update(provenance={"made_by": [{"git_revision": "abc"}, {"git_revision": "def"}]})
    summaries = [
        json.loads(export_text(run, "flowbaby-summary-1.1")) for run in exported.runs.filter(run_order__in=(1, 3))
    ]
    assert [summary.get("git_sha") for summary in summaries] == ["abc", None]


@pytest.mark.parametrize("format", sorted(WORKBOOKS))
def test_workbook_has_the_rows_of_csv_as_they_are(exported, format):
    exported.runs.filter(run_order=2).update(label="=1+1")
    Query.objects.filter(pk=Query.objects.order_by("pk").first().pk).update(key="007")
    subject = subject_of(exported, format)
    rows = read_workbook(b"".join(export(subject, format)))
    expected = list(csv.reader(io.StringIO("".join(map(str, export(subject, format.replace("xlsx", "csv")))))))
    assert len(rows) == len(expected)
    for cells, texts in zip(rows, expected, strict=True):
        assert cells == [
            plain(text) if isinstance(cell, str) else pytest.approx(float(text)) if text else None
            for cell, text in zip(cells, texts, strict=True)
        ]
    written = [cell for cells in rows for cell in cells]
    assert "=1+1" in written
    assert format == "xlsx" or "007" in written


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")  # as this client does, and no server of ours
class TestPages:
    def test_every_link_of_a_page_is_a_file(self, exported, admin_client):
        run = exported.runs.get(run_order=2)
        pages = {"benchmark": reverse("admin:benchmark_results", args=[exported.pk]), "run": change_url(run)}
        for exporter in EXPORTERS.values():
            subject = exported if exporter.exports == "benchmark" else run
            url = reverse(f"admin:{exporter.exports}_export", args=[subject.pk, exporter.name])
            assert url in admin_client.get(pages[exporter.exports]).content.decode()
            answer = admin_client.get(url)
            assert answer["Content-Disposition"].startswith("attachment"), exporter.name
            assert answer["Content-Type"].startswith(exporter.content_type)
            assert b"".join(answer)

    def test_a_server_sends_it_in_parts(self, exported, admin_user):
        async def fetch() -> list[bytes]:
            client = AsyncClient()
            await client.aforce_login(admin_user)
            answer: Any = await client.get(reverse("admin:benchmark_export", args=[exported.pk, "html"]))
            return [piece async for piece in answer.streaming_content]

        pieces = async_to_sync(fetch)()
        assert b"".join(pieces).decode() == export_text(exported, "html")
        assert max(map(len, pieces)) < 100_000

    def test_page_explains_a_failed_export(self, exported, admin_client):
        Benchmark.objects.update(status="running")
        url = reverse("admin:benchmark_export", args=[exported.pk, "latex"])
        assert "is running: export it once it has ended" in admin_client.get(url, follow=True).content.decode()
        assert admin_client.get(reverse("admin:benchmark_export", args=[exported.pk, "csv-run"])).status_code == 404
