"""Coverage next to every value, and results by slice: the numbers that a reader works out by hand."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from apps.datasets.models import Query
from apps.mappings.models import Mapping, Resolution
from apps.mappings.truth import hash_truth
from apps.records.measuring.evaluating import evaluate_runs, load_truth
from apps.records.measuring.slicing import SlicingError, load_slicing
from apps.records.models import Benchmark, Evaluation
from apps.results.triage.by_slice import group_slices
from apps.verdicts import coverage
from apps.verdicts.comparing import compare_runs
from apps.verdicts.coverage import CoverageError, load_coverage
from apps.verdicts.ranked_runs import load_leaderboard
from benchbench.ir.coverage import describe_uneven
from benchbench.site.panels import change_url
from tests.factories import add_judgment, make_benchmark, make_collection, make_dataset, make_mapping
from tests.rankings import add_ranking
from tests.site import count_statements, results_url, text_of


def measured(mapping: Mapping, *rankings: dict[str, list[str]]) -> Benchmark:
    """Return a benchmark with a run for each of the rankings (query key to external ids), measured for real."""
    documents = {document.external_id: document for document in mapping.collection.documents.all()}
    for judgment in mapping.dataset_version.judgments.all():
        result = documents.get(judgment.doc_ref.get("document_id"))
        outcome = "resolved" if result else "not_found"
        Resolution.objects.create(mapping=mapping, judgment=judgment, document=result, outcome=outcome)
    names = ["nDCG@10", "nDCG@2", "P@2", "R@2", "RR", "AP", "Judged@10", "Judged@2", "Judged", "Bpref", "FirstRelevant"]
    benchmark = make_benchmark(mapping, [0.0] * len(rankings), measures=names, k_values=[2, 10])
    for run, ranking in zip(benchmark.runs.all(), rankings, strict=True):
        for key, ids in ranking.items():
            query, result = mapping.dataset.queries.get(key=key), [documents[one].pk for one in ids]
            add_ranking(run, query, result, scores=[float(-rank) for rank in range(len(ids))])
    Evaluation.objects.all().delete()
    evaluate_runs(benchmark, benchmark.runs.all(), version=benchmark.dataset_version)
    return benchmark


@pytest.fixture
def first(mapping: Mapping) -> Benchmark:
    """pear: an unjudged document, then the relevant one; plum: the relevant one alone."""
    return measured(mapping, {"pear": ["d3", "d1"], "plum": ["d2"]})


def test_its_numbers_are_those_worked_out_by_hand(first):
    rows = {row.name: row for row in load_coverage(Evaluation.objects.get())}
    assert "Judged@2" not in rows
    precision = rows["P@2"]
    assert precision.value == (1 / 2 + 1 / 2) / 2
    assert precision.judged == (1 / 2 + 1) / 2
    assert precision.condensed == precision.value
    assert (precision.lower_bound, precision.upper_bound) == ((1 / 2 + 1 / 2) / 2, (1 + 1 / 2) / 2)
    reciprocal = rows["RR"]
    assert (reciprocal.value, reciprocal.condensed) == ((1 / 2 + 1) / 2, 1.0)
    assert (reciprocal.lower_bound, reciprocal.upper_bound) == ((1 / 2 + 1) / 2, 1.0)
    assert (rows["Bpref"].lower_bound, rows["Bpref"].upper_bound) == (None, None), (
        "no bounds are known for the library's"
    )


def test_measure_undefined_for_a_query_has_no_bounds(mapping):
    measured(mapping, {"pear": ["d3", "d1"], "plum": ["d3"]})
    row = {row.name: row for row in load_coverage(Evaluation.objects.get())}["FirstRelevant"]
    assert (row.value, row.condensed, row.lower_bound, row.upper_bound) == (2.0, 1.0, None, None)


def test_page_shows_bounds_and_unresolved_judgments(admin_client, mapping):
    add_judgment(mapping.dataset.queries.get(key="plum"), {"document_id": "gone"}, 1)
    run = measured(mapping, {"pear": ["d3", "d1"], "plum": ["d2"]}).runs.get()
    page = admin_client.get(change_url(run)).content.decode()
    fragment = reverse("admin:run_coverage", args=[run.pk])
    assert f'hx-get="{fragment}"' in page
    text = text_of(admin_client.get(fragment))
    assert "1 judgment matches no document of the collection; it holds 16.7 % of the ideal gain" in text
    assert "75.0 %" in text


def test_it_is_computed_once(first, monkeypatch):
    evaluation = Evaluation.objects.get()
    recognised = load_coverage(evaluation)
    monkeypatch.setattr(coverage, "cover", None)
    assert load_coverage(evaluation) == recognised
    cache.clear()
    with pytest.raises(TypeError):
        load_coverage(evaluation)


def test_values_of_another_truth_have_no_bounds(first):
    Resolution.objects.filter(judgment__query__key="pear").update(document=None, outcome="not_found")
    with pytest.raises(CoverageError, match="re-score"):
        load_coverage(Evaluation.objects.get())


def test_the_leaderboard_shows_how_much_is_judged(admin_client, mapping):
    benchmark = measured(mapping, {"pear": ["d1"], "plum": ["d2"]}, {"pear": ["d3", "d1"], "plum": ["d3", "d1"]})
    page = text_of(admin_client.get(results_url(benchmark), {"k": "2"}))
    assert "judged 100.0 %" in page
    assert "judged 25.0 %" in page
    answer = "Judgment coverage differs: 25.0 % of the top results of “top 20” are judged, but 100.0 % of “top 10”"
    assert answer in page


def test_runs_that_are_judged_alike_need_no_sentence(admin_client, first):
    assert describe_uneven({"a": 0.5, "b": 0.54, "c": None}) == ""
    assert describe_uneven({}) == ""
    assert "Judgment coverage differs" not in text_of(admin_client.get(results_url(first)))


def test_leaderboard_warns_of_few_judgments(admin_client, mapping):
    benchmark = measured(mapping, {"pear": ["d3", "d2"], "plum": ["d3", "d1"]})
    assert "Few of the returned documents are judged" in text_of(admin_client.get(results_url(benchmark)))


def test_a_definition_is_behind_every_column(admin_client, first):
    page = admin_client.get(results_url(first), {"k": "2"}).content.decode()
    for name in ("ndcg10", "ndcg2", "p2", "r2", "rr", "ap", "bpref"):
        assert page.count(f'popovertarget="define-board-{name}"') == page.count(f'id="define-board-{name}"') == 1
    assert 'popovertarget="define-means-p2"' in admin_client.get(change_url(first.runs.get())).content.decode()
    text = text_of(admin_client.get(reverse("admin:measures")))
    assert "Normalised discounted cumulative gain" in text
    assert "infAP" in text


HARD, EASY = 15, 25


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    """Forty queries, of which fifteen are hard: .1 there and .9 elsewhere, the other way round in the second run."""
    keys = [f"q{number:02}" for number in range(HARD + EASY)]
    dataset = make_dataset({key: [({"document_id": "d1"}, 1)] for key in keys})
    for number, key in enumerate(keys):
        difficulty = "hard" if number < HARD else "easy"
        category = "rare" if number in (0, 20) else "common"
        Query.objects.filter(key=key).update(difficulty=difficulty, category=category)
    benchmark = make_benchmark(make_mapping(dataset, make_collection(documents=[{}])), [0.6, 0.4])
    for evaluation in Evaluation.objects.all():
        hard, easy = (0.1, 0.9) if evaluation.run.run_order == 1 else (0.9, 0.1)
        spread = [0.01 * (number % 2) for number in range(HARD + EASY)]
        values = [hard + piece if number < HARD else easy + piece for number, piece in enumerate(spread)]
        evaluation.values = [values for _ in evaluation.measures]
        evaluation.means = {name: sum(values) / len(values) for name in evaluation.measures}
        evaluation.save()
    for key in keys:
        query = Query.objects.get(key=key)
        for run in benchmark.runs.all():
            add_ranking(run, query)
    return benchmark


def test_slice_table_marks_small_and_weak_slices(benchmark):
    evaluation = Evaluation.objects.get(run__run_order=1)
    groups = group_slices(evaluation, load_slicing(benchmark, evaluation), ["nDCG@10", "RR"])
    rows = {row.slice.name: row for group in groups for row in group.rows}
    hard, rare = rows["difficulty: hard"], rows["category: rare"]
    assert [group.partition for group in groups] == ["category", "difficulty"]
    assert hard.slice.n == HARD
    assert hard.values == pytest.approx([0.1 + 0.01 * 7 / HARD] * 2)
    assert hard.weak.p < 0.001
    assert rows["difficulty: easy"].weak is None
    assert rare.slice.is_small
    assert rare.weak is None


def test_queries_without_a_value_make_a_slice_small(benchmark):
    evaluation = Evaluation.objects.get(run__run_order=1)
    evaluation.values = [
        [None if 5 <= i < HARD else one for i, one in enumerate(column)] for column in evaluation.values
    ]
    groups = group_slices(evaluation, load_slicing(benchmark, evaluation), ["nDCG@10", "RR"])
    hard = next(row for group in groups for row in group.rows if row.slice.name == "difficulty: hard")
    assert (hard.slice.n, hard.slice.is_small, hard.weak) == (5, True, None)


def test_the_pages_show_them(admin_client, benchmark):
    page = text_of(admin_client.get(change_url(benchmark.runs.get(run_order=1))))
    assert "1 area to improve" in page
    assert "difficulty: hard : .1047 against .9052 elsewhere, p &lt; .001" in page
    assert "fewer than 10 queries: too few for conclusions" in page


def test_the_leaderboard_of_a_slice_is_over_its_queries(admin_client, benchmark):
    assert [row.run.run_order for row in load_leaderboard(benchmark).rows] == [1, 2]
    board = load_leaderboard(benchmark, within="difficulty: hard")
    assert [row.run.run_order for row in board.rows] == [2, 1]
    assert board.rows[0].values["nDCG@10"] == pytest.approx(0.9 + 0.01 * 7 / HARD)
    page = text_of(admin_client.get(results_url(benchmark), {"slice": "difficulty: hard"}))
    assert "Means over 15 of 0 queries, difficulty: hard." in page
    assert ".9047" in page
    assert "Too few to conclude" in text_of(admin_client.get(results_url(benchmark), {"slice": "category: rare"}))
    none = admin_client.get(results_url(benchmark), {"slice": "difficulty: none such"})
    assert "The slice “difficulty: none such” does not exist here" in text_of(none)
    assert none.context["rows"][0]["primary"] == Evaluation.objects.get(run__run_order=1).means["nDCG@10"]


def test_the_queries_of_a_run_are_filtered_by_slice(admin_client, benchmark):
    url = change_url(benchmark.runs.get(run_order=1))
    response = admin_client.get(url, {"slice": "difficulty: hard"})
    assert {row.query.difficulty for row in response.context["rows"]} == {"hard"}
    assert response.context["page"].paginator.count == HARD
    assert "difficulty: hard: 15 of 40 queries" in text_of(response)
    none = admin_client.get(url, {"slice": "difficulty: none such"})
    assert "The slice “difficulty: none such” does not exist here: all queries are listed" in text_of(none)
    assert "slice=difficulty" in admin_client.get(url, {"slice": "difficulty: easy", "q": "What"}).content.decode()
    page = admin_client.get(url, {"version": "1", "page": "2"}).content.decode()
    assert 'href="?version=1&amp;slice=difficulty%3A+hard#queries"' in page, "the link of a slice keeps the version"


def test_slice_values_for_an_outdated_truth_are_rejected(admin_client, benchmark):
    Evaluation.objects.update(truth_hash="another")
    with pytest.raises(SlicingError, match="resolved again since these values were measured"):
        load_slicing(benchmark, Evaluation.objects.get(run__run_order=1))
    with pytest.raises(SlicingError, match="re-score the benchmark"):
        compare_runs(benchmark.runs.all())
    board = admin_client.get(results_url(benchmark), {"slice": "difficulty: hard"})
    assert "cannot be shown by slice: re-score the benchmark" in text_of(board)
    assert board.context["rows"][0]["primary"] == Evaluation.objects.get(run__run_order=1).means["nDCG@10"]
    page = admin_client.get(change_url(benchmark.runs.get(run_order=1)))
    assert "cannot be shown by slice: re-score the benchmark" in text_of(page)
    assert page.context["slice_groups"] == []
    assert "re-score the benchmark" in text_of(admin_client.get(results_url(benchmark, "verdict")))


def test_slice_page_cost_is_independent_of_run_count(admin_client, benchmark):
    more = make_benchmark(benchmark.mapping, [0.5] * 30, name="many")
    costs = []
    for one in (benchmark, more):
        Evaluation.objects.update(truth_hash=hash_truth(load_truth(one, one.dataset_version)))
        page = f"{results_url(one)}?slice=difficulty%3A+hard"
        costs.append(count_statements(lambda page=page: admin_client.get(page)))
    assert costs[1] <= costs[0]
    assert costs[0] <= 30


def test_dataset_page_shows_label_shape_and_slices(admin_client, benchmark):
    dataset = benchmark.mapping.dataset
    fragment = reverse("admin:dataset_shape", args=[dataset.pk])
    assert fragment in admin_client.get(change_url(dataset)).content.decode()
    response = admin_client.get(fragment)
    assert (response.context["shape"].total_queries, response.context["shape"].pct_one_positive) == (40, 100.0)
    assert "hard 15" in text_of(response)
    assert "rare 2 fewer than 10 queries" in text_of(response)
