"""Coverage beside every value: the numbers are those that a reader works out by hand."""

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from apps.benchmarks.measuring.evaluating import evaluate_runs
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.mappings.models import Mapping, Resolution
from apps.results.leaderboard import coverage
from apps.results.leaderboard.coverage import CoverageError, coverage_of, uneven
from benchbench.site.panels import change_url
from tests.factories import add_judgment, make_benchmark
from tests.rankings import add_ranking
from tests.results.test_pages import results_url, text_of


def measured(mapping: Mapping, *rankings: dict[str, list[str]]) -> Benchmark:
    """Return a benchmark with a run for each of the rankings (query key to external ids), measured for real."""
    documents = {document.external_id: document for document in mapping.collection.documents.all()}
    for judgment in mapping.dataset_version.judgments.all():  # type: ignore[union-attr]
        found = documents.get(judgment.doc_ref.get("document_id"))
        outcome = "resolved" if found else "not_found"
        Resolution.objects.create(mapping=mapping, judgment=judgment, document=found, outcome=outcome)
    names = ["nDCG@10", "nDCG@2", "P@2", "R@2", "RR", "AP", "Judged@10", "Judged@2", "Judged", "Bpref", "FirstRelevant"]
    benchmark = make_benchmark(mapping, [0.0] * len(rankings), measures=names, k_values=[2, 10])
    for run, ranking in zip(benchmark.runs.all(), rankings, strict=True):
        for key, ids in ranking.items():
            add_ranking(
                run,
                mapping.dataset.queries.get(key=key),
                [documents[one].pk for one in ids],
                scores=[float(-rank) for rank in range(len(ids))],
            )
    Evaluation.objects.all().delete()
    evaluate_runs(benchmark, benchmark.runs.all(), version=benchmark.dataset_version)
    return benchmark


@pytest.fixture
def first(mapping: Mapping) -> Benchmark:
    """pear: an unjudged document, then the relevant one; plum: the relevant one alone."""
    return measured(mapping, {"pear": ["d3", "d1"], "plum": ["d2"]})


def test_its_numbers_are_those_worked_out_by_hand(first: Benchmark) -> None:
    rows = {row.name: row for row in coverage_of(Evaluation.objects.get())}
    assert "Judged@2" not in rows
    precision = rows["P@2"]
    assert precision.value == (1 / 2 + 1 / 2) / 2
    assert precision.judged == (1 / 2 + 1) / 2
    assert precision.condensed == precision.value
    assert (precision.least, precision.greatest) == ((1 / 2 + 1 / 2) / 2, (1 + 1 / 2) / 2)
    reciprocal = rows["RR"]
    assert (reciprocal.value, reciprocal.condensed) == ((1 / 2 + 1) / 2, 1.0)
    assert (reciprocal.least, reciprocal.greatest) == ((1 / 2 + 1) / 2, 1.0)
    assert (rows["Bpref"].least, rows["Bpref"].greatest) == (None, None), "no bounds are known for the library's"


def test_what_some_query_has_no_value_of_has_no_bounds(mapping: Mapping) -> None:
    measured(mapping, {"pear": ["d3", "d1"], "plum": ["d3"]})
    row = {row.name: row for row in coverage_of(Evaluation.objects.get())}["FirstRelevant"]
    assert (row.value, row.condensed, row.least, row.greatest) == (2.0, 1.0, None, None)


def test_the_page_shows_them_and_what_is_unresolved(admin_client: Client, mapping: Mapping) -> None:
    add_judgment(mapping.dataset.queries.get(key="plum"), {"document_id": "gone"}, 1)
    run = measured(mapping, {"pear": ["d3", "d1"], "plum": ["d2"]}).runs.get()
    page = admin_client.get(change_url(run)).content.decode()
    fragment = reverse("admin:run_coverage", args=[run.pk])
    assert f'hx-get="{fragment}"' in page
    shown = text_of(admin_client.get(fragment))
    assert "1 judgment fits no document of the collection; it holds 16.7 % of the ideal gain" in shown
    assert "75.0 %" in shown


def test_it_is_computed_once(first: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = Evaluation.objects.get()
    known = coverage_of(evaluation)
    monkeypatch.setattr(coverage, "cover", None)
    assert coverage_of(evaluation) == known
    cache.clear()
    with pytest.raises(TypeError):
        coverage_of(evaluation)


def test_values_of_another_truth_have_no_bounds(first: Benchmark) -> None:
    Resolution.objects.filter(judgment__query__key="pear").update(document=None, outcome="not_found")
    with pytest.raises(CoverageError, match="re-score"):
        coverage_of(Evaluation.objects.get())
    run = Run.objects.get()
    assert run.pk


def test_the_leaderboard_shows_judged_beside_values_and_says_that_runs_differ(
    admin_client: Client, mapping: Mapping
) -> None:
    benchmark = measured(mapping, {"pear": ["d1"], "plum": ["d2"]}, {"pear": ["d3", "d1"], "plum": ["d3", "d1"]})
    page = text_of(admin_client.get(results_url(benchmark), {"k": "2"}))
    assert "judged 100.0 %" in page
    assert "judged 25.0 %" in page
    assert (
        "The runs are not judged alike: 25.0 % of what “top 20” returns first is judged, and 100.0 % of “top 10”"
        in page
    )


def test_runs_that_are_judged_alike_need_no_sentence(admin_client: Client, first: Benchmark) -> None:
    assert uneven({"a": 0.5, "b": 0.54, "c": None}) == ""
    assert uneven({}) == ""
    assert "not judged alike" not in text_of(admin_client.get(results_url(first)))


def test_few_judgments_are_told(admin_client: Client, mapping: Mapping) -> None:
    benchmark = measured(mapping, {"pear": ["d3", "d2"], "plum": ["d3", "d1"]})
    assert "Few of the documents that these runs return are judged" in text_of(admin_client.get(results_url(benchmark)))


def test_a_definition_is_behind_every_column(admin_client: Client, first: Benchmark) -> None:
    page = admin_client.get(results_url(first), {"k": "2"}).content.decode()
    for name in ("ndcg10", "ndcg2", "p2", "r2", "rr", "ap", "bpref"):
        assert page.count(f'popovertarget="define-board-{name}"') == page.count(f'id="define-board-{name}"') == 1
    run = admin_client.get(change_url(first.runs.get())).content.decode()
    assert 'popovertarget="define-means-p2"' in run
    shown = text_of(admin_client.get(reverse("admin:measures")))
    assert "Normalised discounted cumulative gain" in shown
    assert "infAP" in shown
