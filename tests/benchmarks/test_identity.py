"""Policies about which documents are one: each query's document excluded, and identical texts judged alike."""

import json
import random
from html import unescape
from typing import Any

import ir_measures
import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.collections.duplicates import count_duplicates, find_duplicates
from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection, Document
from apps.collections.records import DocumentRecord
from apps.collections.states import record_state
from apps.datasets.models import Query
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.execution.defining.creating import clone
from apps.execution.defining.previewing import preview
from apps.experiments.manifests import build_manifest
from apps.experiments.reproducing import reproduce
from apps.judging.opening import RoundOptions, open_round
from apps.judging.question import load_question, pack, unpack
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.records.comparability import find_differences
from apps.records.lists.reading import load_rankings
from apps.records.models import Run, StageList
from apps.retrieval.models import Chunk
from benchbench.ir.measures import GradedRankings, SharedGrades, count_once, name_texts
from tests.created import run_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.library import ENCODER, FRUITS, import_all
from tests.rankings import add_ranking
from tests.site import BENCHMARK_FORM

HASH = "f" * 64
pytestmark = pytest.mark.django_db(transaction=True)
DEPTH = 10
MATRIX = {
    "search_modes": ["dense", "sparse"],
    "top_k_values": [DEPTH],
    "candidates": [DEPTH],
    "k_values_for_metrics": [DEPTH],
    "primary_k": DEPTH,
    "ann": ["exact", "hnsw(ef_search=100)"],
}


def import_arguments() -> Mapping:
    """Import 40 documents of three chunks each, and 8 queries with the key and the text of a document."""
    draw = random.Random(4)
    texts = {f"d{number:02}": " ".join(draw.choices(FRUITS, k=30)) for number in range(40)}
    documents = [DocumentRecord(key, "", text) for key, text in texts.items()]
    names = list(texts)
    queries = [
        QueryRecord(
            names[number],
            texts[names[number]],
            judgments=[JudgmentRecord({"document_id": names[number + step]}, grade=step) for step in (1, 2)],
        )
        for number in range(8)
    ]
    chunks = {"chunk_parameters": {"size": 60, "overlap": 0}}
    return import_all(documents, queries, name="keywords", encoder=ENCODER, **chunks)


def list_documents(run: Run, *, without_self: bool) -> dict[str, list[str]]:
    """Return the documents of the first DEPTH chunks of a run's stored lists, by query: after self is left out."""
    names = dict(Chunk.objects.values_list("pk", "document__external_id"))
    ranked = {}
    for stored in StageList.objects.filter(source=run.source, repetition=1).select_related("query"):
        documents = [names[chunk] for chunk in stored.chunk_ids or ()]
        ids = [name for name in documents if not (without_self and name == stored.query.key)][:DEPTH]
        ranked[stored.query.key] = list(dict.fromkeys(ids))
    return ranked


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_lists_lose_the_document_before_the_cut(execution: str) -> None:
    mapping = import_arguments()
    deep = run_benchmark(mapping, name="deep", matrix=MATRIX | {"top_k_values": [50], "candidates": [50]})
    assert any(
        key in names for run in deep.runs.all() for key, names in list_documents(run, without_self=False).items()
    )
    benchmark = run_benchmark(mapping, name="without", matrix=MATRIX, exclude_self=True, execution=execution)
    for run, deeper in zip(benchmark.runs.order_by("run_order"), deep.runs.order_by("run_order"), strict=True):
        ranked = list_documents(run, without_self=False)
        assert not any(key in names for key, names in ranked.items())
        if run.configuration.ann == "exact":  # an approximate list of another depth may differ
            assert ranked == list_documents(deeper, without_self=True), run.label
        assert set(StageList.objects.filter(source=run.source).values_list("chunk_ids__len", flat=True)) == {DEPTH}
        assert run.provenance["policies"]["exclude_self"] is True
    differences = find_differences([benchmark.runs.all()[0], deep.runs.all()[0]])
    assert "excluded (" in differences.refusals[0]
    suggestion = (
        '8 of 8 queries have a document of their key, such as "d00"; 8 of these documents have the query\'s text'
    )
    assert [suggestion in warning for warning in preview(mapping, MATRIX).warnings] == [True]
    assert preview(mapping, MATRIX, exclude_self=True).warnings == []
    manifest = json.loads(json.dumps(build_manifest(benchmark)))
    assert (manifest["exclude_self"], manifest["identical_texts"]) == (True, "different")
    again = reproduce(manifest)
    assert (again.exclude_self, clone(again).exclude_self) == (True, True)


def test_preview_page_suggests_the_exclusion_by_its_field(admin_client: Client) -> None:
    fields = BENCHMARK_FORM | {"mapping": str(import_arguments().pk)}
    address, form = reverse("admin:benchmark_preview"), reverse("admin:benchmarks_benchmark_add")
    suggestion = "turn on exclude_self, “Exclude each query's document”"
    assert suggestion in unescape(admin_client.post(address, fields).text)
    assert suggestion not in unescape(admin_client.post(address, fields | {"exclude_self": "on"}).text)
    assert "Exclude each query's document" in unescape(admin_client.get(form, fields).text)


def import_twins() -> Mapping:
    """Import 30 documents, of which every text occurs twice but that of d00, and queries that judge some of them."""
    draw = random.Random(9)
    texts = [" ".join(draw.choices(FRUITS, k=8)) for _ in range(15)]
    shelf = {f"d{number:02}": texts[number % 15] if number else "apple pear" for number in range(30)}
    queries = []
    for number in range(6):
        judged = draw.sample(sorted(shelf), k=9)
        judgments = [JudgmentRecord({"document_id": key}, grade=draw.randint(0, 3)) for key in judged]
        queries.append(QueryRecord(f"q{number}", " ".join(draw.sample(FRUITS, k=3)), judgments=judgments))
    documents = [DocumentRecord(key, "", text) for key, text in shelf.items()]
    return import_all(documents, queries, name="keywords", encoder=ENCODER)


MEASURES = ["nDCG@5", "P@5", "R@5", "RR", "AP", "Judged@5", "Bpref", "Rprec", "Success@1"]


def compute_by_hand(run: Run) -> dict[str, dict[str, float]]:
    """Return the values of ir_measures by query: rankings and judgments name texts, and further ones have grade 0."""
    texts = dict(Document.objects.values_list("pk", "text"))
    qrels, ranked = [], []
    for query in Query.objects.all():
        grades: dict[str, int] = {}
        for text, grade in query.judgments.values_list("resolutions__document__text", "grade"):
            grades[text] = max(grade, grades.get(text, 0))
        seen: dict[str, int] = {}
        for position, pk in enumerate(load_rankings(run)[query.pk]):
            text = texts[pk]
            seen[text] = seen.get(text, 0) + 1
            name = text if seen[text] == 1 else f"{text} {seen[text]}"
            ranked.append(ir_measures.ScoredDoc(query.key, name, -position))
            if seen[text] > 1 and text in grades:
                qrels.append(ir_measures.Qrel(query.key, name, 0))
        qrels += [ir_measures.Qrel(query.key, text, grade) for text, grade in grades.items()]
    by_query: dict[str, dict[str, float]] = {}
    for value in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in MEASURES], qrels, ranked):
        by_query.setdefault(value.query_id, {})[str(value.measure)] = value.value
    return by_query


def compute_tied_share(run: Run, k: int) -> float:
    """Return the share of the first `k` positions whose score the one before or after has."""
    tied = ranked = 0
    for scores in run.query_results.values_list("scores", flat=True):
        neighbours = [{*scores[max(n - 1, 0) : n], *scores[n + 1 : n + 2]} for n in range(min(k, len(scores)))]
        tied += sum(scores[n] in around for n, around in enumerate(neighbours))
        ranked += len(neighbours)
    return tied / ranked


def test_values_equal_those_of_judgments_shared_by_hand(admin_client: Client) -> None:
    mapping = import_twins()
    matrix = {"search_modes": ["dense", "sparse", "hybrid"], "k_values_for_metrics": [5], "primary_k": 5}
    shared = {"matrix": matrix, "measures": MEASURES, "empty_queries": "zero"}
    usual = run_benchmark(mapping, name="usual", **shared)
    alike = run_benchmark(mapping, name="alike", identical_texts="judged", **shared)
    warning, ties = sorted(usual.runs.all()[0].warnings)
    assert warning.startswith('28 documents of the collection "library" have the text of another one, and ')
    assert "identical_texts: judged" in warning
    share = compute_tied_share(usual.runs.all()[0], 5)
    assert ties.startswith(
        f"{100 * share:.1f} % of the first 5 positions have the score of a neighbour, as for the query q"
    )
    assert preview(mapping, matrix).warnings == [warning]
    assert preview(mapping, matrix, identical_texts="judged").warnings == []
    assert alike.runs.all()[0].warnings == [ties]
    for run in alike.runs.all():
        evaluation = run.evaluations.get()
        assert evaluation.policies["identical_texts"] == "judged"
        by_hand = compute_by_hand(run)
        for query in Query.objects.all():
            values = {name: evaluation.get_by_query(name)[query.pk] for name in MEASURES}
            assert values == pytest.approx(by_hand[query.key]), (run.label, query.key)
    apart = usual.runs.all()[0].evaluations.get()
    assert apart.means["nDCG@5"] != alike.runs.all()[0].evaluations.get().means["nDCG@5"]
    differences = find_differences([usual.runs.all()[0], alike.runs.all()[0]])
    assert [row.about for row in differences.differences if row.severity == "refuse"] == ["policy identical_texts"]
    page = admin_client.get(reverse("admin:benchmark_results", args=[alike.pk])).content.decode()
    assert "identical texts judged alike" in page
    results = admin_client.get(f"/api/v2/benchmarks/{alike.pk}/results").json()
    assert (results["identical_texts"], results["exclude_self"]) == ("judged", False)


def test_duplicates_are_those_of_a_searched_state() -> None:
    collection = create_collection("library")
    shelf = [DocumentRecord(key, "", text) for key, text in {"a": "one", "c": "two", "e": "", "f": ""}.items()]
    shelf.append(DocumentRecord("g", "", "six", content_hash=HASH))
    import_documents(collection, [*shelf, DocumentRecord("b", "", "one")])
    record_state(collection, Collection.objects.get().fingerprint)
    changed = [DocumentRecord("b", "", "two"), DocumentRecord("h", "", "ten", content_hash=HASH)]
    import_documents(collection, [*shelf, *changed])
    keys = dict(collection.documents.values_list("external_id", "pk"))

    def name_groups(state: int | None) -> list[list[str]]:
        return [sorted(group.values()) for group in find_duplicates(collection, {*keys.values()}, state=state)]

    assert name_groups(1) == [["a", "b"]]
    assert name_groups(None) == [["b", "c"]]  # g and h are different texts of one file
    assert count_duplicates(collection) == 2
    assert find_duplicates(collection, {keys["a"]}) == []


def test_the_first_of_identical_texts_gains_alone() -> None:
    grades = SharedGrades({1: 2, 2: 2, 3: 0, 4: 0}, {2: 1, 4: 3})
    assert (count_once(grades), grades.find_repeats([2, 9, 1, 4, 3])) == ({1: 2, 3: 0}, [2, 4])
    assert name_texts(grades, [2, 9, 1, 4]) == [1, 9, 2, 3]
    graded = GradedRankings.from_rankings([[2, 9, 1, 4, 3], [9, 1]], [grades, {1: 1}])
    assert np.array_equal(graded.grades, [[2, np.nan, 0, 0, 0], [np.nan, 1, *[np.nan] * 3]], equal_nan=True)
    assert graded.ideal.tolist() == [[2], [1]]
    assert graded.truths == [{1: 2, 3: 0}, {1: 1}]


def test_a_round_asks_for_a_text_once() -> None:
    documents = [{"external_id": key, "text": text, "content_hash": text} for key, text in TEXTS.items()]
    dataset = make_dataset({"q1": [({"document_id": "a1"}, 2)], "q2": [({"document_id": "b1"}, 1)]})
    mapping = make_mapping(dataset, make_collection("library", documents))
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping, [0.5, 0.6], identical_texts="judged")
    keys = dict(mapping.collection.documents.values_list("external_id", "pk"))
    for run, ranking in zip(
        benchmark.runs.order_by("run_order"), (["a2", "c2", "b1"], ["c1", "a1", "c2"]), strict=True
    ):
        for query in Query.objects.all():
            add_ranking(run, query, [keys[key] for key in ranking], scores=[3, 2, 1])
    judge = User.objects.create(username="ada", is_staff=True)
    opened = open_round([*benchmark.runs.all()], RoundOptions("which"), judges=[judge])
    items = opened.items.order_by("query__key", "document__external_id")
    assert [*items.values_list("query__key", "document__external_id")] == [
        ("q1", "b1"),
        ("q1", "c1"),
        ("q2", "a1"),
        ("q2", "c1"),
    ]
    question, _ = load_question(opened, [*benchmark.runs.order_by("run_order")])
    assert [question.truths[0][keys[key]] for key in ("a1", "a2", "c2")] == [2, 0, 0]
    assert not question.is_fair
    unpacked, _ = unpack(pack(question, np.zeros(question.pool.size, np.int64)), opened)
    assert not unpacked.is_fair


TEXTS = {"a1": "alpha", "a2": "alpha", "b1": "beta", "c1": "gamma", "c2": "gamma"}


def test_duplicates_are_counted_again_after_an_import(django_assert_num_queries: Any) -> None:
    collection = create_collection("twins")
    import_documents(collection, [DocumentRecord(key, "", "one pear") for key in "ab"])
    collection.refresh_from_db()
    assert count_duplicates(collection) == 2
    with django_assert_num_queries(0):
        assert count_duplicates(collection) == 2
    import_documents(collection, [DocumentRecord(key, "", "one pear") for key in "abc"])
    collection.refresh_from_db()
    assert count_duplicates(collection) == 3
