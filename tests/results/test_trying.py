"""Trying a query: the ranks are a benchmark's, the terms sum to the scores, and a worker answers the page."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import reduce
from operator import add
from typing import Any

import django_rq
import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from rq import Queue

from apps.collections.models import Collection
from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.operations import queueing
from apps.operations.management.commands.worker import Command
from apps.records.models import Benchmark, QueryResult
from apps.results.trial_search import search
from apps.results.trying import MAX_HITS, Trial
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.search import lexical_indexes
from apps.retrieval.search.words import make_words
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.lexical import Lexical
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.kept import made_once
from tests.library import make_library
from tests.site import count_statements, text_of
from tests.staff import MakeStaff

MATRIX = {
    "search_modes": ["dense", "sparse", "hybrid"],
    "use_reranker": [False, True],
    "top_k_values": [12],
    "k_values_for_metrics": [5],
    "primary_k": 5,
}


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    cache.clear()
    return make_finished()


@made_once
def make_finished() -> Benchmark:
    return run_benchmark(make_library(), name="Every way", matrix=MATRIX)


@pytest.fixture
def quick(finished: Benchmark) -> Iterator[Queue]:
    """The queue of quick jobs, with nothing on it."""
    queue = django_rq.get_queue(queueing.QUICK)
    queue.empty()
    for key in queue.connection.scan_iter("benchbench:waits:*"):
        queue.connection.delete(key)
    yield queue
    queueing.retire_worker("a worker", [queueing.QUICK])
    queue.empty()


def make_trial(text: str, **options: Any) -> Trial:
    values = {"mode": "sparse", "use_reranker": False, "top_k": 12} | options
    return Trial(text=text, index_id=str(Index.objects.get().pk), **values)


def test_ranks_and_scores_are_those_of_a_benchmark(finished):
    for run in finished.runs.all():
        options = {"mode": run.config["search_mode"], "use_reranker": run.config["use_reranker"]}
        for result in run.query_results.select_related("query"):
            answer = search(make_trial(result.query.text, **options))
            assert answer.error == ""
            assert answer.depth == len(result.document_ids)
            hits = [(hit.document, hit.chunk, hit.score) for hit in answer.hits]
            assert hits == list(zip(result.document_ids, result.chunk_ids, result.scores, strict=True))[:MAX_HITS]


def test_terms_sum_to_the_score_of_the_engine(finished):
    for text in ("pear plum pear", "the pears and a melon", "apple"):
        for hit in search(make_trial(text)).hits:
            (step,) = hit.steps
            assert reduce(add, (amount for _, amount in step.terms), 0.0) == step.score == hit.score
    assert [word for word, _ in search(make_trial("pear unheard pear")).hits[0].steps[0].terms] == ["pear"] * 2
    for hit in search(make_trial("pear plum", mode="hybrid")).hits:
        dense, lexical, fused = hit.steps
        ranks = [f"{step.name} rank {step.rank}" for step in (dense, lexical) if step.rank]
        assert [label for label, _ in fused.terms] == ranks
        assert sum(amount for _, amount in fused.terms) == pytest.approx(fused.score, abs=1e-12)
        assert fused.score == hit.score


def test_it_lists_the_terms_of_query_and_documents(finished):
    answer = search(make_trial("The pears, and PLUMS"))
    assert answer.terms == ["pear", "plum"]
    assert all({"pear", "plum"} & set(hit.terms) for hit in answer.hits)
    assert search(make_trial("the")).terms == []
    assert search(make_trial("pear", mode="dense")).terms is None


def test_settings_of_lexical_search_are_tried(finished):
    tuned = search(make_trial("pear plum", lexical="bm25(k1=0.5, b=0.1)"))
    assert tuned.hits[0].score != search(make_trial("pear plum")).hits[0].score
    for hit in tuned.hits:
        assert sum(amount for _, amount in hit.steps[0].terms) == pytest.approx(hit.score, abs=1e-6)
    make_words(ChunkSet.objects.get(), Lexical.parse("fts"))
    answer = search(make_trial("pear plum", lexical="fts"))
    assert answer.terms is None
    assert {step.kind for hit in answer.hits for step in hit.steps} == {"ts_rank"}


def test_words_that_are_not_indexed_are_named(admin_client, finished):
    page = reverse("admin:collection_try", args=[Collection.objects.get().pk])
    requests = {"q": "pear", "index": Index.objects.get().pk, "way": "sparse", "lexical": "bm25(language=de)"}
    form = admin_client.get(page, requests).context["form"]
    assert form.errors["lexical"] == [
        "The index “keywords” has no words of bm25(language=german): a benchmark with it indexes them."
    ]
    form = admin_client.get(page, requests | {"lexical": "bm25(k=3)"}).context["form"]
    assert "did you mean k1?" in form.errors["lexical"][0]
    requests |= {"lexical": "bm25", "other_way": "sparse", "other_lexical": "bm25( k1=0.9 )"}
    titles = [title for title, _ in admin_client.get(page, requests).context["trials"]]
    assert titles == ["keywords, lexical", "keywords, lexical, bm25(k1=0.9)"]


def test_a_worker_answers_what_the_page_asks(admin_client, finished, quick):
    collection, text = Collection.objects.get(), Query.objects.all()[0].text
    requests = {"q": text, "index": Index.objects.get().pk, "way": "sparse", "other_way": "dense", "top_k": 12}
    page = reverse("admin:collection_try", args=[collection.pk])
    response = admin_client.get(page, requests)
    assert [title for title, _ in response.context["trials"]] == ["keywords, lexical", "keywords, dense"]
    query_string = response.wsgi_request.META["QUERY_STRING"]
    first, second = (f"{page}{side}/?{query_string}" for side in (0, 1))
    assert f'hx-post="{first.replace("&", "&amp;")}"' in response.content.decode()

    assert "No worker serves the queue quick" in text_of(admin_client.post(first))
    queueing.announce_worker("a worker", [queueing.QUICK])
    admin_client.get(first)
    assert not quick.job_ids, "looking starts nothing"
    for _ in range(2):
        assert "A worker is searching" in text_of(admin_client.post(first))
    assert len(quick.job_ids) == 1
    assert ", every 10s" in admin_client.post(first).content.decode(), "a request that fails is not the last"
    admin_client.post(second)
    Command().handle(queues=["default"], burst=True)
    for address, mode in ((first, "sparse"), (second, "dense")):
        answer = admin_client.post(address)
        run = finished.runs.get(config__search_mode=mode, config__use_reranker=False)
        hits = [row["hit"].document.pk for row in answer.context["hits"]]
        expected = QueryResult.objects.get(run=run, query__text=text).document_ids
        assert hits == expected[:MAX_HITS]
    assert "BM25" in text_of(admin_client.post(first))
    assert "similarity" in text_of(admin_client.post(second))
    assert count_statements(lambda: admin_client.post(first)) <= 15
    assert count_statements(lambda: admin_client.get(page, requests)) <= 20


def test_tried_queries_are_judged_and_added(admin_client, finished, make_staff: MakeStaff):
    collection, dataset, index = Collection.objects.get(), finished.mapping.dataset, Index.objects.get()
    query = Query.objects.filter(dataset=dataset).first()
    requests = {"q": query.text, "index": index.pk, "way": "sparse", "top_k": 12, "dataset": dataset.pk}
    page = reverse("admin:collection_try", args=[collection.pk])
    response = admin_client.get(page, requests)
    assert f'href="{change_url(query)}"' in response.content.decode()
    trial = response.context["trials"][0][1]
    cache.set(trial.key, {"answer": asdict(search(trial))}, 60)
    rows = admin_client.get(f"{page}0/", requests).context["hits"]
    grades = {row["hit"].document.external_id: row["hit"].grade for row in rows}
    judged = {judgment.doc_ref["document_id"]: judgment.grade for judgment in query.judgments.all()}
    assert grades == {key: judged.get(key) for key in grades}
    Mapping.objects.update(owner=User.objects.create_user("grace"))
    ada = make_staff("ada")
    ada_client = Client()
    ada_client.force_login(ada)
    assert not any(row["hit"].grade for row in ada_client.get(f"{page}0/", requests).context["hits"]), (
        "hers is not read"
    )
    form = admin_client.get(rows[0]["judge_url"])
    assert form.context["pair"].document == rows[0]["hit"].document
    posted = admin_client.post(rows[0]["judge_url"], {"grade": 1, "next": form.context["form"].initial["next"]})
    assert posted.url.startswith(f"{page}?q=")

    new = admin_client.get(page, requests | {"q": "What is a quince?"})
    add_url = new.context["judging"].add_url
    assert admin_client.get(add_url).context["form"].initial["query_key"] == "what-is-a-quince"
    added = admin_client.post(add_url, {"query_key": "quince", "query_text": "What is a quince?"})
    assert added.url.startswith(f"{page}?q=What")
    assert Query.objects.get(dataset=dataset, key="quince").text == "What is a quince?"


def test_indexes_that_cannot_answer_are_refused(client, finished):
    ada, grace = (User.objects.create_user(name, is_staff=True) for name in ("ada", "grace"))
    seen = Permission.objects.filter(codename__in=["view_collection", "view_index"])
    ada.user_permissions.set(seen)
    client.force_login(ada)
    collection, index = Collection.objects.get(), Index.objects.get()
    page = reverse("admin:collection_try", args=[collection.pk])
    requests = {"q": "pear", "index": index.pk, "way": "hybrid", "top_k": 12}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexical_indexes, "RULES", lexical_indexes.RULES + 1)
        assert "cannot be read: another version of BenchBench" in text_of(client.get(page, requests))
    Index.objects.update(lexical_index=None)
    assert "has no BM25 index: choose dense search" in text_of(client.get(page, requests))
    assert client.post(f"{page}0/?q=pear&way=dense&top_k=0&index={index.pk}").status_code == 404
    Index.objects.update(owner=grace)
    assert "No index of this collection can be searched" in text_of(client.get(page, requests | {"way": "dense"}))
    assert client.post(f"{page}0/?q=pear&way=dense&top_k=12&index={index.pk}").status_code == 404
    ada.user_permissions.set(seen.filter(codename="view_collection"))
    assert client.get(page).status_code == 403


def test_a_query_alone_is_tried_with_usual_settings(admin_client, finished):
    page = reverse("admin:collection_try", args=[Collection.objects.get().pk])
    answer = admin_client.get(page, {"q": "pear"})
    assert not answer.context["form"].errors
    assert [trial.index_id for _, trial in answer.context["trials"]] == [str(Index.objects.get().pk)]
    assert 'id="trial-options" >' in answer.text
    refused = admin_client.get(page, {"q": "pear", "top_k": 0})
    assert 'id="trial-options" open>' in refused.text, "a fold with an error is open"


def test_sliders_tune_what_is_tried(admin_client, finished):
    page = reverse("admin:collection_try", args=[Collection.objects.get().pk])
    requests = {"q": "pear plum", "index": Index.objects.get().pk, "way": "hybrid", "rrf_k": 7, "k1": 0.9, "b": 0.4}
    requests |= {"other_way": "weighted", "other_dense": 0.7, "top_k": 12}
    response = admin_client.get(page, requests)
    (first, hybrid), (second, weighted) = response.context["trials"]
    assert first == "keywords, hybrid (RRF), k 7, bm25(k1=0.9, b=0.4)"
    assert second == "keywords, hybrid (weighted sum), dense 0.7"
    assert (hybrid.lexical, hybrid.rrf_k, hybrid.weights) == ("bm25(k1=0.9, b=0.4)", 7, None)
    assert (weighted.lexical, weighted.rrf_k, weighted.weights) == ("bm25", 60, (0.7, 0.3))
    for trial in (hybrid, weighted):
        hits = search(trial).hits
        assert hits
        for hit in hits:
            *_, fused = hit.steps
            assert sum(amount for _, amount in fused.terms) == pytest.approx(fused.score, abs=1e-12)
    assert "<output>0.7</output>" in response.content.decode()
    errors = admin_client.get(page, requests | {"lexical": "bm25(k1=3)"}).context["form"].errors
    assert errors["lexical"] == ["Sliders set k1 and b: write bm25."]
    assert "less than or equal to 1" in str(admin_client.get(page, requests | {"b": 2}).context["form"].errors["b"])


def test_two_tried_searches_become_a_benchmark(admin_client, finished):
    page = reverse("admin:collection_try", args=[Collection.objects.get().pk])
    requests = {"q": "pear", "index": Index.objects.get().pk, "way": "sparse", "k1": 0.9, "b": 0.4, "top_k": 12}
    assert not admin_client.get(page, requests).context["benchmark_url"], "it takes two"
    context = admin_client.get(page, requests | {"other_way": "weighted", "other_dense": 0.7}).context
    form = admin_client.get(context["benchmark_url"]).context["form"]
    assert form["mapping"].value() == str(finished.mapping_id)
    assert form["name"].value().startswith("keywords, lexical, bm25(k1=0.9, b=0.4) | keywords, hybrid")
    assert (form["search_modes"].value(), form["fusion"].value()) == (["sparse", "hybrid"], ["weighted"])
    assert form["lexical"].value() == "bm25(k1=0.9, b=0.4), bm25"
    assert (form["weights"].value(), form["top_k_values"].value()) == ("0.7:0.3", "12")
    posted = {field.html_name: value for field in form if (value := field.value()) not in (None, "")}
    posted |= {"execution": "shared", "unresolved": "count", "empty_queries": "zero"}
    created = admin_client.post(reverse("admin:benchmarks_benchmark_add"), posted)
    assert created.status_code == 302
    runs = [Configuration.from_dict(run.config) for run in Benchmark.objects.latest("created_at").runs.all()]
    assert {replace(trial.configuration, index="keywords") for _, trial in context["trials"]} < {*runs}

    wrong = admin_client.get(f"{reverse('admin:benchmarks_benchmark_add')}?matrix=%7B")
    assert "The matrix in the address" in text_of(wrong)
    Mapping.objects.update(status=Mapping.Status.PENDING)
    assert not admin_client.get(page, requests | {"other_way": "dense"}).context["benchmark_url"]
