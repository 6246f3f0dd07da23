"""Texts and sections that a predictable search retrieves, to numbers worked out by hand."""

import pytest
from django.core.cache import cache
from django.urls import reverse

from apps.collections.records import DocumentRecord, SectionRecord
from apps.datasets.models import Query
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.records.lists.reading import CutError
from apps.records.models import Benchmark, Evaluation, QueryResult, Run, StageList
from apps.results.triage import sections as content
from apps.results.triage.sections import (
    Content,
    ContentError,
    ContentMean,
    find_section,
    load_content,
    load_section_means,
)
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.factories import make_benchmark
from tests.kept import made_once
from tests.library import import_all
from tests.rankings import change_rankings, own_rankings
from tests.site import count_statements, text_of

SPRING = "bloom in the spring"
CAKE = "fine, old cake"
TEXTS = {
    "a": "pear cake is a fine old cake  " + "pear trees bloom in the spring",
    "b": "plum jam needs a lot of sugar ",
    "c": "pear pear pear pear pear pear ",
}


@pytest.fixture
def benchmark(transactional_db: None) -> Benchmark:
    """Chunks of 30 characters, and two of them count. "pear" finds c, the second of a, and the first of a too late."""
    documents = [DocumentRecord(external_id=key, title=key, text=text) for key, text in TEXTS.items()]
    judged = [JudgmentRecord({"document_id": "a"}, 1)]
    records = [
        QueryRecord("pear", "pear", judged, evidence=[CAKE, SPRING], expected_answer="Pear trees bloom."),
        QueryRecord("both", "bloom fine", judged, evidence=[CAKE, SPRING]),
        QueryRecord("sugar", "sugar", judged, expected_answer="Sugar, sugar, and a lot of pectin!"),
        QueryRecord("zebra", "zebra", judged, evidence=["zebra"]),
        QueryRecord("jam", "jam", judged),
    ]
    mapping = import_all(documents, records, name="chunks", chunk_parameters={"size": 30, "overlap": 0})
    matrix = {"search_modes": ["sparse"], "k_values_for_metrics": [1, 2], "primary_k": 2}
    return run_benchmark(mapping, name="b", matrix=matrix)


def fragment_of(run: Run) -> str:
    return reverse("admin:run_content", args=[run.pk])


def test_the_values_are_those_worked_out_by_hand(benchmark):
    content = load_content(Evaluation.objects.get())
    keys = dict(Query.objects.values_list("pk", "key"))
    values = {keys[query.query_id]: query.values for query in content.queries}
    assert list(values) == ["zebra", "pear", "both", "sugar"], "the least evidence recall first"
    assert values == {
        "zebra": [0, None, None],  # it found nothing
        "pear": [1 / 2, 1, 2 * 3 / (3 + 6)],  # the cake is in its third chunk
        "both": [1, None, None],  # in two chunks of one document
        "sugar": [None, 4 / 6, 2 * 3 / (7 + 7)],
    }
    assert [(row.name, row.mean, row.queries) for row in content.means] == [
        ("evidence_recall", (0 + 1 / 2 + 1) / 3, 3),
        ("answer_token_overlap", pytest.approx((1 + 4 / 6) / 2), 2),
        ("rouge_l", pytest.approx((2 / 3 + 3 / 7) / 2), 2),
    ]
    assert (content.k, content.unanswered) == (2, 0)


def test_a_query_that_failed_is_left_out_and_counted(admin_client, benchmark):
    change_rankings(QueryResult.objects.filter(query__key="zebra"), error="It timed out.")
    content = load_content(Evaluation.objects.get())
    assert (content.means[0], content.unanswered) == (ContentMean("evidence_recall", 3 / 4, 2), 1)
    page = text_of(admin_client.get(fragment_of(benchmark.runs.get())))
    assert "3 have evidence or an expected answer; 1 more failed or was not searched, and is left out." in page


def test_the_page_of_a_run_shows_and_defines_them(admin_client, benchmark):
    run = benchmark.runs.get()
    fragment = fragment_of(run)
    assert f'hx-get="{fragment}"' in admin_client.get(change_url(run)).content.decode()
    response = admin_client.get(fragment)
    page = text_of(response)
    assert "Over the first 2 chunks" in page
    assert "Evidence recall .5000 3 Answer token overlap .8333 2 ROUGE-L .5476 2" in page
    assert "sequences of letters, digits and underscores, lower-cased" in page
    assert "zebra zebra .0000 – –" in page
    assert change_url(QueryResult.objects.get(query__key="zebra")) in response.content.decode()


def test_where_nothing_is_stated_nothing_is_offered(admin_client, mapping):
    run = make_benchmark(mapping, [0.5]).runs.get()
    assert fragment_of(run) not in admin_client.get(change_url(run)).content.decode()
    assert load_content(Evaluation.objects.get()) == Content(10, [], 0)
    assert "No query with evidence or an expected answer has results." in text_of(admin_client.get(fragment_of(run)))


def test_it_is_computed_once_for_each_state(benchmark, monkeypatch):
    evaluation = Evaluation.objects.get()
    recognised = load_content(evaluation)
    monkeypatch.setattr(content, "rouge_l", None)
    assert load_content(evaluation) == recognised
    evaluation.failed_queries += 1
    with pytest.raises(TypeError):
        load_content(evaluation)


def test_batch_size_does_not_change_content_values(benchmark, monkeypatch):
    evaluation = Evaluation.objects.get()
    recognised = load_content(evaluation)
    cache.clear()
    monkeypatch.setattr(content, "QUERIES_AT_ONCE", 1)
    assert load_content(evaluation) == recognised


def test_statement_count_is_independent_of_query_count(admin_client, benchmark):
    fragment = fragment_of(benchmark.runs.get())
    costs = []
    for _ in range(2):
        cache.clear()
        costs.append(count_statements(lambda: admin_client.get(fragment)))
        Query.objects.exclude(key="pear").update(evidence=[], expected_answer="")
    assert costs[0] == costs[1] <= 18


def test_unavailable_content_values_are_explained(admin_client, benchmark):
    run, evaluation = benchmark.runs.get(), Evaluation.objects.get()
    Query.objects.filter(key="both").update(evidence=[{"page": 3}])
    with pytest.raises(ContentError, match="evidence of the query 'both' must be a list of texts"):
        load_content(evaluation)
    assert "write each passage as a text" in text_of(admin_client.get(fragment_of(run)))
    Query.objects.filter(key="both").update(evidence=[])
    own_rankings(run.benchmark)
    change_rankings(QueryResult.objects.filter(query__key="pear"), document_ids=[], chunk_ids=[], scores=[])
    with pytest.raises(CutError, match="do not match this run's rankings"):
        load_content(evaluation)
    StageList.objects.filter(lengths=None).delete()
    assert "run the benchmark again" in text_of(admin_client.get(fragment_of(run)))
    Run.objects.update(is_external=True, index=None)
    assert "run names only documents" in text_of(admin_client.get(fragment_of(run)))


TEXT_PIECES = {
    "a": ("apple apple apple   ", "pear pear pear pear "),
    "b": ("pear plum fig lemon ", "plum plum plum plum "),
}


@pytest.fixture
def sectioned(transactional_db: None) -> Benchmark:
    return make_sectioned()


@made_once
def make_sectioned() -> Benchmark:
    """Two documents of two sections, a chunk each. "pear" finds (a, s2), (b, s1); "plum" finds (b, s2), (b, s1)."""
    sections = (SectionRecord("s1", start=0, end=20), SectionRecord("s2", start=20, end=40))
    documents = [DocumentRecord(key, key, "".join(pieces), sections=sections) for key, pieces in TEXT_PIECES.items()]
    records = [
        QueryRecord("pear", "pear", [JudgmentRecord({"document_id": "b"}, 1, ["s1", "s2"])]),
        QueryRecord("plum", "plum", [JudgmentRecord({"document_id": "a"}, 1, ["s2"])]),
        QueryRecord("fig", "fig", [JudgmentRecord({"document_id": "b"}, 1)]),
    ]
    mapping = import_all(documents, records, name="chunks", chunk_parameters={"size": 20, "overlap": 0})
    matrix = {"search_modes": ["sparse"], "k_values_for_metrics": [1, 2], "primary_k": 1}
    return run_benchmark(mapping, name="b", matrix=matrix)


def test_the_means_are_those_worked_out_by_hand(sectioned):
    means = load_section_means(Evaluation.objects.get())
    assert means.judgments == 2, "the third judgment names no section"
    answers = [(row.k, row.doc_recall, row.section_recall, row.section_share) for row in means.rows]
    assert answers == [(1, 0.0, 0.0, 0.0), (2, 0.5, 0.5, 0.25)]
    assert (means.doc_mrr, means.section_mrr) == ((1 / 2 + 0) / 2, (1 / 2 + 0) / 2)


def test_the_page_of_the_run_shows_them(admin_client, sectioned):
    run = sectioned.runs.get()
    fragment = reverse("admin:run_sections", args=[run.pk])
    assert fragment in admin_client.get(change_url(run)).content.decode()
    page = text_of(admin_client.get(fragment))
    assert "Over 2 judgments that name sections" in page
    assert "Recall@2 .5000 .5000 .2500" in page


def test_values_measured_before_resolving_again_are_rejected(sectioned):
    Evaluation.objects.update(truth_hash="of another resolution")
    with pytest.raises(CutError, match="resolved again after this run was measured"):
        load_section_means(Evaluation.objects.get())


def test_without_its_lists_it_says_so(admin_client, sectioned):
    own_rankings(sectioned)
    StageList.objects.filter(lengths=None).delete()
    with pytest.raises(CutError, match="not stored"):
        load_section_means(Evaluation.objects.get())
    page = text_of(admin_client.get(reverse("admin:run_sections", args=[sectioned.runs.get().pk])))
    assert "run the benchmark again" in page


def test_a_chunk_belongs_to_the_section_it_overlaps_most():
    spans = [(0, 100, "whole"), (0, 40, "first"), (40, 100, "second")]
    assert find_section(30, 60, spans[1:]) == "second"
    assert find_section(10, 30, spans) == "first", "of spans that overlap alike, the shortest"
    assert find_section(200, 300, spans) is None
    assert find_section(0, 10, []) is None


@pytest.mark.parametrize(
    ("text", "question", "evidence"),
    [
        ("北京是中国的首都，人口很多。 pear", "pear", "中国的首都"),
        ("The Library is open until eight in the evening, pear", "pear", "open until EIGHT in the evening"),
        ("गाँव का पुस्तकालय शाम आठ बजे तक खुला है। pear", "pear", "शाम आठ बजे"),
        ("La bibliothe\u0300que est ouverte, pear", "pear", "bibliothèque est ouverte"),
    ],
)
def test_evidence_in_any_script_counts_in_full(transactional_db, text, question, evidence):
    judged = [JudgmentRecord({"document_id": "a"}, 1)]
    record = QueryRecord("q", question, judged, evidence=[evidence], expected_answer=evidence)
    mapping = import_all([DocumentRecord(external_id="a", title="", text=text)], [record], name="whole")
    run_benchmark(mapping, name="b", matrix={"search_modes": ["sparse"], "k_values_for_metrics": [1], "primary_k": 1})
    (result,) = load_content(Evaluation.objects.get()).queries
    assert (result.evidence_recall, result.answer_token_overlap) == (1, 1)
