"""The pages of a query and of a document: what is judged, what every run makes of it, and how that moves."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from apps.collections.models import Collection, Document
from apps.datasets.models import Judgment, Query
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.mappings.truth import read_truth
from apps.records.models import Benchmark, Evaluation, QueryResult
from apps.retrieval.models import Chunk, ChunkSet, Index
from benchbench.site.panels import change_url
from tests.benchmarks.figures import by_query
from tests.drafts import set_judgment
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.rankings import add_ranking
from tests.results.compared import make_finished
from tests.site import HOSTILE, count_statements, freeze_by_page, press, text_of
from tests.staff import MakeStaff


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


def values_of(benchmark: Benchmark, version: int, query: Query) -> dict[Any, float]:
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version__number=version)
    return {evaluation.run_id: by_query(evaluation)[query.pk] for evaluation in evaluations}


def test_query_page_has_values_and_ranks_of_every_run(admin_client, finished):
    query = finished.dataset_version.queries.order_by("key")[1]
    response = admin_client.get(change_url(query))
    page, displayed = response.content.decode(), response.context["runs"]
    values = values_of(finished, 1, query)
    assert {row.run.pk: row.value for row in displayed.rows} == values
    assert [row.value for row in displayed.rows] == sorted(values.values(), reverse=True)
    assert [row.mean for row in displayed.rows] == [
        row.run.evaluations.get().means["nDCG@10"] for row in displayed.rows
    ]
    assert sorted(x for trace in response.context["figure"]["data"] for x in trace["x"]) == sorted(values.values())

    grades = read_truth(finished.mapping, finished.dataset_version).grades[query.pk]
    matrix = {row.row.pk: row for row in response.context["matrix"]}
    assert {pk: row.grade for pk, row in matrix.items() if row.grade is not None} == grades
    results = [QueryResult.objects.get(run=row.run, query=query) for row in displayed.ranked]
    for pk, row in matrix.items():
        places = [result.document_ids.index(pk) + 1 if pk in result.document_ids else None for result in results]
        assert row.ranks == places
    for result in results:
        assert f'href="{change_url(result)}"' in page
        assert (
            f"{change_url(query)}?benchmark={finished.pk}&amp;version=1"
            in admin_client.get(change_url(result)).content.decode()
        ), "and back"
    best = response.context["relevant"][0]
    assert best.judgment.grade == max(grades.values())
    assert any(piece.hit and piece.text in query.text for piece in best.passage), "the passage that matters"
    by_rank = admin_client.get(change_url(query), {"by": "RR"}).context["runs"]
    assert (by_rank.measure, [row.value for row in by_rank.rows]) != ("nDCG@10", [row.value for row in displayed.rows])


def test_judging_on_query_page_moves_its_values(admin_client, finished):
    query = finished.dataset_version.queries.order_by("key").first()
    page = change_url(query)
    displayed = admin_client.get(page)
    judgment = displayed.context["relevant"][0].judgment
    url = f"{reverse('admin:query_judge', args=[query.pk])}?judgment={judgment.pk}&next={page}"
    assert url.replace("&", "&amp;").replace("next=/", "next=%2F").split("next")[0] in displayed.content.decode()
    response = admin_client.post(url, {"grade": "0", "next": page}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    assert [row.judgment.grade for row in response.context["irrelevant"]] == [0]
    assert "in the draft of version 2" in text_of(response)
    assert max(row.grade for row in response.context["matrix"] if row.grade) == judgment.grade, "as it was measured"

    freeze_by_page(admin_client, finished.mapping.dataset, next=page)
    press(admin_client, finished.mapping, "resolve_selected", next=page)
    press(admin_client, finished, "rescore_selected", next=page)
    displayed = admin_client.get(page).context["runs"]
    old, new = values_of(finished, 1, query), values_of(finished, 2, query)
    assert old != new
    assert (displayed.at.version.number, {row.run.pk: row.value for row in displayed.rows}) == (2, new)
    assert {row.run.pk: row.change for row in displayed.rows} == {run: new[run] - old[run] for run in new}
    history = [(row.version.number, row.best, row.worst, row.changes.changed) for row in displayed.history]
    assert history == [(2, max(new.values()), min(new.values()), 1), (1, max(old.values()), min(old.values()), 0)]
    first = admin_client.get(page, {"version": "1"}).context
    assert {row.run.pk: row.value for row in first["runs"].rows} == old
    assert max(row.grade for row in first["matrix"] if row.grade) == judgment.grade
    assert [button.label for step in first["steps"] for button in step.buttons] == ["Values on v2"]
    for nonsense in ({"version": "7"}, {"benchmark": "x"}, {"benchmark": str(finished.mapping_id)}):
        assert admin_client.get(page, nonsense).status_code == 404


@pytest.fixture
def many(db: None) -> Benchmark:
    """64 runs that each rank 40 documents, of which 30 are judged and one has no document; and a draft."""
    collection = make_collection("library", [{"title": f"On {n}", "text": f"About q1, {n}."} for n in range(40)])
    refs: list[tuple[Any, int]] = [({"document_id": f"d{n + 1}"}, n % 4) for n in range(30)]
    mapping = make_mapping(make_dataset({"q1": [*refs, ({"uri": "gone"}, 3)], "q2": refs[:1]}), collection)
    resolve(mapping)
    benchmark = make_benchmark(mapping, [n / 64 for n in range(64)])
    documents = list(collection.documents.order_by("external_id").values_list("pk", flat=True))
    for run in benchmark.runs.all():
        turned = documents[run.run_order % 40 :] + documents[: run.run_order % 40]
        add_ranking(run, mapping.dataset.queries.get(key="q1"), turned, scores=[0.0] * 40)
    set_judgment(mapping.dataset, "q1", {"document_id": "d40"}, 1)
    set_judgment(mapping.dataset, "q1", {"uri": "nowhere"}, 1)
    return benchmark


def test_pages_ask_little_of_64_runs(client, make_staff: MakeStaff, many):
    client.force_login(make_staff("ada"))
    query, document = Query.objects.get(key="q1"), Document.objects.get(external_id="d4")
    for page in (change_url(query), change_url(document)):
        client.get(page)
        assert count_statements(lambda page=page: client.get(page)) <= 26
        assert len(client.get(page).content) < 300_000
    response = client.get(change_url(query))
    assert [len(row.ranks) for row in response.context["matrix"]] == [64] * (31 + 5)
    unjudged = {row.document.external_id: row.run_count for row in response.context["unjudged"]}
    assert len(unjudged) == 5
    assert "d40" not in unjudged, "it is judged in the draft"
    firsts = [documents[:10] for documents in QueryResult.objects.values_list("document_ids", flat=True)]
    for external_id, hit in unjudged.items():
        assert hit == sum(Document.objects.get(external_id=external_id).pk in first for first in firsts)
    lost = next(row for row in response.context["matrix"] if row.row is None)
    assert (lost.name, lost.grade, set(lost.ranks)) == ("gone", 3, {None})
    drafted = next(row for row in response.context["relevant"] if row.judgment.reference == "d40")
    assert drafted.document.external_id == "d40", "resolved here: no mapping is resolved for a draft"


def test_pages_read_the_first_repetition_that_did_not_fail(admin_client, many):
    query, document = Query.objects.get(key="q2"), Document.objects.get(external_id="d1")
    run = many.runs.get(run_order=64)
    add_ranking(run, query, error="The worker was killed.")
    for repetition in (2, 3):
        add_ranking(run, query, [document.pk], scores=[0.5], repetition=repetition)
    (displayed,) = [row for row in admin_client.get(change_url(query)).context["runs"].rows if row.result]
    assert (displayed.result.repetition, displayed.ranking) == (2, [document.pk])
    Judgment.objects.filter(query=query).delete()
    of_document = {row.row.key: row.ranks[0] for row in admin_client.get(change_url(document)).context["matrix"]}
    assert of_document["q2"] == 1, "best run first"


def test_document_page_shows_chunks_queries_and_ranks(admin_client, many):
    document = Document.objects.get(external_id="d4")
    Document.objects.filter(pk=document.pk).update(text="word " * 5_000 + "end", metadata={"kind": "page"})
    chunk_set = ChunkSet.objects.create(collection=document.collection, strategy="flat", fingerprint="f")
    Chunk.objects.bulk_create(
        Chunk(chunk_set=chunk_set, document=document, ordinal=n, position=n, text=f"chunk {n}.", text_hash=str(n))
        for n in range(60)
    )
    for name, chunks in (("old", chunk_set), ("new", ChunkSet.objects.create(collection=document.collection))):
        Index.objects.create(
            collection=document.collection, name=name, status="ready", chunk_set=chunks, fingerprint=name
        )
    page = admin_client.get(change_url(document), {"index": Index.objects.get(name="old").pk, "page": "2"})
    assert [chunk.head for chunk in page.context["page"]] == [f"chunk {n}." for n in range(50, 60)]
    assert "Show the other 5,003 characters" in text_of(page)
    assert admin_client.get(change_url(document), {"text": "all"}).context["text"].endswith("end")
    assert [(row.judgment.query.key, row.judgment.grade) for row in page.context["judging"]] == [("q1", 3)]
    (row,) = page.context["matrix"]
    runs = [run for run, _ in page.context["columns"]]
    assert [run.run_order for run in runs] == [*range(64, 0, -1)], "best first"
    hits = [QueryResult.objects.get(run=run).document_ids.index(document.pk) + 1 for run in runs]
    assert (row.grade, row.ranks) == (3, hits)
    Judgment.objects.filter(doc_ref={"document_id": "d4"}).delete()
    (unjudged,) = admin_client.get(change_url(document)).context["matrix"] or [None]
    assert unjudged is None or (unjudged.grade, unjudged.row.key) == (None, "q1")


def test_rows_of_other_owners_stay_hidden(client, make_staff: MakeStaff, many):
    client.force_login(make_staff("ada"))
    grace = make_staff("grace")
    query, document = Query.objects.get(key="q1"), Document.objects.get(external_id="d4")
    Collection.objects.update(owner=grace)
    assert "About q1" not in text_of(client.get(change_url(query))), "texts belong to the collection"
    Benchmark.objects.update(owner=grace)
    response = client.get(change_url(query))
    assert response.context["runs"] is None
    assert client.get(change_url(query), {"benchmark": many.pk}).status_code == 404
    assert client.get(change_url(document)).status_code == 404
    Collection.objects.update(owner=None)
    Mapping.objects.update(owner=grace)
    assert client.get(change_url(document)).context["judging"] == []
    User.objects.filter(username="ada").update(is_staff=False)
    assert client.get(change_url(query)).status_code == 302


def test_texts_of_a_query_are_no_markup(admin_client, many):
    Query.objects.update(text=HOSTILE, expected_answer=HOSTILE, evidence=[HOSTILE], metadata={"a": HOSTILE})
    Query.objects.update(notes=HOSTILE, slices=[HOSTILE], filters={HOSTILE: HOSTILE})
    Document.objects.update(title=HOSTILE, text=HOSTILE, metadata={HOSTILE: HOSTILE})
    Judgment.objects.update(note=HOSTILE, judge=HOSTILE, section_refs=[HOSTILE])
    Benchmark.objects.update(name=HOSTILE)
    for row in (Query.objects.get(key="q1"), Document.objects.get(external_id="d4")):
        page = admin_client.get(change_url(row))
        assert "<script>alert" not in page.content.decode()
        assert "alert(&#x27;x&#x27;)" in page.content.decode()
