"""The pages of results: what depends on them, what they mark in texts, and where they lead."""

import re
import unicodedata

import pytest
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.mappings.models import Resolution
from apps.operations.models import Operation
from apps.records.models import Benchmark, Evaluation, QueryResult, Run
from benchbench.markup import EXCERPT, excerpt, mark_words
from benchbench.site.panels import build_list_url, change_url
from tests.created import run_benchmark
from tests.factories import add_judgment, add_version, make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.library import make_library
from tests.rankings import added_ranking
from tests.site import HOSTILE, count_statements, results_url, text_of


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


@made_once
def make_finished() -> Benchmark:
    matrix = {"search_modes": ["dense", "sparse", "hybrid"], "k_values_for_metrics": [5, 10]}
    return run_benchmark(make_library(documents=30, queries=30), name="Which mode?", matrix=matrix)


def test_from_the_leaderboard_to_a_ranking(admin_client, finished):
    """One walk along the links, on one real benchmark: making it takes most of the time."""
    response = admin_client.get(results_url(finished))
    page = text_of(response)
    evaluations = {evaluation.run_id: evaluation for evaluation in Evaluation.objects.all()}
    order = sorted(finished.runs.all(), key=lambda run: -evaluations[run.pk].means["nDCG@10"])
    assert re.findall(r'data-run="([^"]+)"', response.content.decode()) == [str(run.run_order) for run in order]
    assert f"{evaluations[order[0].pk].means['nDCG@10']:.4f}".removeprefix("0") in page
    assert "3 of 3 completed" in page
    assert 'id="figure"' in response.content.decode()
    for name in ("collection library", "dataset questions", "mapping library"):
        assert name in page, "the trail"

    run = order[-1]
    response = admin_client.get(change_url(run))
    values = [row.values[0] for row in response.context["rows"]]
    assert values == sorted(values), "worst first"
    assert len(values) == 10
    assert "Page 1 of 3" in text_of(response)
    second = admin_client.get(change_url(run), {"page": "2"})
    assert min(row.values[0] for row in second.context["rows"]) >= max(values)
    best_first = admin_client.get(change_url(run), {"order": "best", "by": "RR"})
    ranks = [row.values[best_first.context["measures"].index("RR")] for row in best_first.context["rows"]]
    assert ranks == sorted(ranks, reverse=True)

    query = finished.dataset_version.queries.first()
    actual = admin_client.get(change_url(run), {"q": query.key})
    assert [row.query for row in actual.context["rows"]] == [query]
    result = QueryResult.objects.get(run=run, query=query)
    assert change_url(result) in actual.content.decode()
    page = text_of(admin_client.get(change_url(result)))
    assert finished.mapping.collection.documents.get(pk=result.document_ids[0]).external_id in page
    assert "The same query in the other runs" in page
    assert "<mark>" in admin_client.get(change_url(result)).content.decode()


@pytest.mark.parametrize(("order", "keys"), [("best", ["fig", "pear", "plum"]), ("worst", ["plum", "pear", "fig"])])
def test_a_query_without_a_value_is_worse_than_any(admin_client, order, keys):
    """The rank of the first relevant document has no value where none is found."""
    judged = [({"document_id": "d1"}, 1)]
    dataset = make_dataset({"pear": judged, "plum": judged, "fig": judged})
    measures = ["nDCG@10", "FirstRelevant"]
    mapping = make_mapping(dataset, make_collection("library", [{"title": "On pears"}]))
    run = make_benchmark(mapping, [0.5], measures=measures, k_values=[10]).runs.get()
    Evaluation.objects.update(values=[[0.5, 0.0, 1.0], [2.0, None, 1.0]])
    response = admin_client.get(change_url(run), {"order": order, "by": "FirstRelevant"})
    assert [row.query.key for row in response.context["rows"]] == keys


def test_the_fragment_alone_is_right_at_any_moment(admin_client, finished):
    Benchmark.objects.filter(pk=finished.pk).update(status="running")
    active = admin_client.get(results_url(finished, "live"))
    assert 'data-active="true"' in active.content.decode()
    assert "no-store" in active["Cache-Control"]
    Benchmark.objects.filter(pk=finished.pk).update(status="completed")
    page = admin_client.get(results_url(finished, "live")).content.decode()
    assert 'data-active="false"' in page
    assert "<html" not in page
    assert f'value="{results_url(finished)}"' in page or "_selected_action" not in page


def test_the_cutoff_switches_the_other_measures(admin_client, mapping):
    benchmark = make_benchmark(mapping, [0.5])
    assert "R@10" in text_of(admin_client.get(results_url(benchmark)))
    at_five = admin_client.get(results_url(benchmark), {"k": "5"})
    assert at_five.context["measures"] == ["nDCG@5", "P@5", "R@5", "RR", "AP"]
    assert "live/?k=5" in at_five.content.decode()
    for nonsense in ("nonsense", "9" * 5_000):  # more digits than int() takes
        assert admin_client.get(results_url(benchmark), {"k": nonsense}).status_code == 404


def test_a_panel_whose_count_is_zero_says_no_more(admin_client, db):
    page = text_of(admin_client.get(change_url(make_collection("empty"))))
    assert "Indexes None yet. Mappings None yet. Documents 0" in page
    assert page.count("None yet.") == 2


def test_page_shows_warnings_and_errors_of_failed_runs(admin_client, mapping):
    benchmark = make_benchmark(mapping, [0.5, None])
    benchmark.runs.filter(run_order=1).update(warnings=["raise top_k."], failed_queries=2)
    page = text_of(admin_client.get(results_url(benchmark)))
    assert "1 of 2 completed, 1 failed" in page
    assert "The encoder is gone." in page
    assert "raise top_k." in page


@pytest.mark.parametrize(("policy", "message"), [("count", "counted as not found"), ("drop", "left out")])
def test_page_shows_the_share_of_unresolved_judgments(admin_client, mapping, policy, message):
    benchmark = make_benchmark(mapping, [0.5], unresolved=policy)
    Evaluation.objects.update(unresolved_count=12, unresolved_share=0.031)
    page = text_of(admin_client.get(results_url(benchmark)))
    assert "12 of 0 judgments are unresolved; they hold 3.1 % of the ideal gain" in page
    assert message in page


def test_benchmark_waiting_for_a_worker_is_shown_as_queued(admin_client, mapping):
    operation = Operation.objects.create(kind="benchmark", subject_id=mapping.pk, parameters={"run_ids": []})
    benchmark = make_benchmark(mapping, [None], status="running", operation=operation)
    for path in (results_url(benchmark), change_url(benchmark), build_list_url(Benchmark), reverse("admin:index")):
        for status, message in (("pending", "queued"), ("running", "running")):
            Operation.objects.update(status=status)
            assert re.search(rf">\s*{message}\s*<", admin_client.get(path).content.decode()), (path, message)


@pytest.mark.parametrize(("execution", "marked"), [("shared", True), ("isolated", False)])
def test_shared_times_are_marked(admin_client, mapping, execution, marked):
    run = make_benchmark(mapping, [0.5], execution=execution).runs.get()
    Run.objects.update(timing={**run.timing, "execution": execution})
    result = added_ranking(run, mapping.dataset.queries.get(key="pear"), total_ms=5.0)
    for path in (results_url(run.benchmark), change_url(run), change_url(result), build_list_url(QueryResult)):
        assert ("shared" in text_of(admin_client.get(path)).split()) is marked, path


def test_a_cancelled_benchmark_offers_to_resume(admin_client, mapping):
    benchmark = make_benchmark(mapping, [0.5], status="cancelled")
    benchmark.runs.update(status=Run.Status.CANCELLED)
    page = text_of(admin_client.get(results_url(benchmark)))
    assert "Resume" in page
    assert ".5000" not in page


def test_page_cost_is_independent_of_run_count(admin_client, mapping):
    costs = []
    for name, values in (("few", [0.5] * 2), ("many", [0.5] * 30)):
        page = results_url(make_benchmark(mapping, values, name=name))
        costs.append(count_statements(lambda page=page: admin_client.get(page)))
    assert costs[0] == costs[1]
    assert costs[0] <= 22


def test_ranking_shows_grades_and_explains_missing_documents(admin_client, mapping):
    documents = {document.external_id: document for document in mapping.collection.documents.all()}
    query = mapping.dataset.queries.get(key="pear")
    second = add_judgment(query, {"document_id": "d2"}, 2)
    lost = add_judgment(query, {"uri": "gone:1"}, 1)
    for judgment in (query.judgments.get(grade=3), second):
        document = documents[judgment.doc_ref["document_id"]]
        Resolution.objects.create(mapping=mapping, judgment=judgment, document=document, outcome="resolved")
    Resolution.objects.create(mapping=mapping, judgment=lost, outcome="not_found", reason="No document has the uri.")
    run = make_benchmark(mapping, [0.5]).runs.get()
    result = added_ranking(run, query, [documents["d1"].pk, documents["d3"].pk], scores=[0.9, 0.8])
    response = admin_client.get(change_url(result))
    assert [hit.grade for hit, _, _ in response.context["hits"]] == [3, None]
    assert [(one.grade, one.reference) for one in response.context["paths"].lost] == [(2, "d2"), (1, "gone:1")]
    page = text_of(response)
    assert "Not among the 2 documents" in page
    assert "Unresolved: No document has the uri." in page
    assert "stages unknown" in page
    assert "unjudged" in page


def test_a_query_that_failed_shows_its_error(admin_client, mapping):
    query = mapping.dataset.queries.get(key="pear")
    run = make_benchmark(mapping, [0.5]).runs.get()
    result = added_ranking(run, query, error="The index was away.")
    assert "This query failed: The index was away." in text_of(admin_client.get(change_url(result)))
    assert "The index was away." in text_of(admin_client.get(change_url(run)))


def test_nothing_that_people_upload_is_markup(admin_client, mapping):
    document = mapping.collection.documents.first()
    type(document).objects.filter(pk=document.pk).update(title=HOSTILE, text=f"{HOSTILE} pear {HOSTILE}")
    mapping.dataset.queries.update(text=f"pear {HOSTILE}")
    add_version(mapping.dataset)
    benchmark = make_benchmark(mapping, [0.5, None], name=HOSTILE, description=HOSTILE)
    run = benchmark.runs.get(run_order=1)
    Run.objects.update(label=HOSTILE, warnings=[HOSTILE], config={"index": HOSTILE, "search_mode": "dense"})
    Run.objects.filter(status="failed").update(error_message=HOSTILE)
    result = added_ranking(run, mapping.dataset.queries.first(), [document.pk], scores=[1.0])
    pages = [change_url(one) for one in (run, result, benchmark, document, mapping)]
    pages += [results_url(benchmark), results_url(benchmark, "live"), reverse("admin:index")]
    for page in pages:
        assert "<script>alert" not in admin_client.get(page).content.decode(), page


def test_the_start_page_leads_through_five_steps(admin_client, db):
    page = admin_client.get(reverse("admin:index"))
    assert page.context["next_step"]["title"] == "Add documents"
    for add in ("collections_collection", "retrieval_index", "datasets_dataset", "mappings_mapping"):
        assert reverse(f"admin:{add}_add") in page.content.decode()


def test_start_page_and_operation_list_name_the_subject(admin_client, mapping):
    Operation.objects.create(kind="resolve", subject_id=mapping.pk, status="running")
    assert f"Resolve {mapping.name} running" in text_of(admin_client.get(reverse("admin:index")))
    assert mapping.name in text_of(admin_client.get(build_list_url(Operation)))


def hits(text: str, query: str) -> list[str]:
    return [piece.text for piece in mark_words(text, query) if piece.hit]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Pears and plums", "pears", ["Pears"]),
        ("Indexing an index", "indexes", ["Indexing", "index"]),
        ("a spear is no pear", "pear", ["pear"]),
        ("an ox", "an ox", []),
        ("The pear and then the plum", "the pear and The plum", ["pear", "plum"]),
        ("C++ (really)", "c++ (really)", ["really"]),
        ("Größe", "größe", ["Größe"]),
        ("nothing", "", []),
    ],
)
def test_it_marks_the_words_of_the_query(text, query, expected):
    assert hits(text, query) == expected


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("最大的城市", "上海是最大的城市。", ["最大的城市"]),
        ("大学图书馆", "图书和大学", ["图书", "大学"]),  # two letters that are adjacent in the query
        ("図書館 ABC", "ＡＢＣ図書館", ["ＡＢＣ図書館"]),
        ("水", "喝水，水果", ["水", "水"]),
        ("भाषा", "हिन्दी भाषाएँ", ["भाषाएँ"]),
        ("cafe\u0301", "le Café noir", ["Café"]),
        ("café", "le cafe\u0301 noir", ["cafe\u0301"]),
        ("Bibliothek", "die Biblio\u00adtheken", ["Biblio\u00adtheken"]),
        ("STRASSE", "lange Straßen", ["Straßen"]),
        ("한국", unicodedata.normalize("NFD", "한국어"), [unicodedata.normalize("NFD", "한국")]),
    ],
)
def test_words_of_any_script_and_form_are_marked(query, text, expected):
    assert hits(text, query) == expected
    assert "".join(piece.text for piece in mark_words(text, query)) == text


def test_an_excerpt_without_blanks_shows_its_hit():
    pieces = excerpt("字" * 2000 + "图书馆" + "字" * 2000, "图书馆")
    assert [piece.text for piece in pieces if piece.hit] == ["图书馆"]
    assert sum(len(piece.text) for piece in pieces) <= EXCERPT + 4


def test_an_excerpt_begins_shortly_before_the_first_hit():
    pieces = excerpt("word " * 200 + "pear " + "more " * 200, "pear")
    displayed = "".join(piece.text for piece in pieces)
    assert displayed.startswith("… word")
    assert displayed.endswith("…")
    assert len(displayed) <= EXCERPT + 10
    assert [piece.text for piece in pieces if piece.hit] == ["pear"]


def test_without_a_hit_it_is_the_beginning():
    assert "".join(piece.text for piece in excerpt("a short text", "pear")) == "a short text"


@settings(max_examples=50)
@given(st.text(max_size=600), st.text(max_size=60))
def test_no_character_is_lost_or_made_up(text, query):
    assert "".join(piece.text for piece in mark_words(text, query)) == text
