"""The pages that say what a run lost: by cause, by query, against another run."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from apps.records.models import Benchmark, Evaluation, QueryResult, Run, StageList
from apps.results.triage.queries import load_evaluation
from apps.results.triage.side_by_side import ROW
from apps.results.triage.triaging import load_losses
from benchbench.ir.triage import Loss
from benchbench.site.panels import change_url
from tests.created import run_benchmark
from tests.kept import made_once
from tests.library import make_library
from tests.rankings import change_rankings
from tests.site import count_statements, text_of

MATRIX = {"search_modes": ["dense", "hybrid"], "top_k_values": [5], "k_values_for_metrics": [5], "primary_k": 5}
RERANKED = {"use_reranker": [False, True], "candidates": [15], "rerank_depths": [10]}


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


@made_once
def make_finished() -> Benchmark:
    return run_benchmark(make_library(), name="Which mode?", matrix=MATRIX | RERANKED)


def run_of(benchmark: Benchmark, mode: str, *, reranked: bool = False) -> Run:
    return benchmark.runs.get(config__search_mode=mode, config__use_reranker=reranked)


def values_of(run: Run) -> dict[int, Any]:
    evaluation = Evaluation.objects.get(run=run)
    return dict(zip(evaluation.query_ids, evaluation.values[evaluation.measures.index("nDCG@5")], strict=True))


def test_pages_lead_from_cause_to_query_to_lost_document(admin_client, finished):
    run = run_of(finished, "dense", reranked=True)
    counted = load_losses(run, load_evaluation(run)).tally[Loss.DEMOTED_BY_RERANKER]
    answer = admin_client.get(change_url(run))
    assert f"Demoted by the reranker {counted.documents} {counted.queries} " in text_of(answer)
    assert "?cause=demoted+by+reranker" in answer.content.decode()

    chosen = admin_client.get(change_url(run), {"cause": "demoted by reranker"})
    rows = chosen.context["rows"]
    assert len(rows) == counted.queries
    assert all(Loss.DEMOTED_BY_RERANKER in row.lost.causes for row in rows)
    assert [row.values[0] for row in rows] == sorted(row.values[0] for row in rows), "worst first"
    assert change_url(rows[0].result) in chosen.content.decode()

    response = admin_client.get(change_url(rows[0].result))
    page = text_of(response)
    assert "The reranker moved it from rank" in page
    assert "Try another reranker" in page
    lost = response.context["paths"].lost
    assert len(lost) == rows[0].lost.lost
    assert [stop.stage for stop in lost[0].stops][:2] == ["dense", "reranked"]
    page = response.content.decode()
    assert page.index('id="ranking"') < page.index('id="lost"')
    _, stops, _ = response.context["hits"][0]
    assert [(stop.stage, stop.rank) for stop in stops][1:] == [("reranked", 1)], "found documents have a path too"


def test_a_cause_that_there_is_not_chooses_nothing(admin_client, finished):
    run = run_of(finished, "dense")
    for cause, queries in (("nonsense", 12), ("", 12), ("unresolved", 0)):
        assert admin_client.get(change_url(run), {"cause": cause}).context["page"].paginator.count == queries
    every = admin_client.get(change_url(run), {"cause": "any"}).context["rows"]
    assert every
    assert all(row.lost for row in every)


def test_runs_of_different_truths_are_not_compared(admin_client, finished):
    dense, hybrid = run_of(finished, "dense"), run_of(finished, "hybrid")
    Evaluation.objects.filter(run=hybrid).update(truth_hash="another")
    response = admin_client.get(change_url(dense), {"against": hybrid.pk})
    assert "Not compared with the other run. The mapping" in text_of(response)
    assert all(row.other_value is None for row in response.context["rows"])


def test_two_runs_are_held_against_each_other(admin_client, finished):
    dense, hybrid = run_of(finished, "dense"), run_of(finished, "hybrid")
    response = admin_client.get(change_url(dense), {"against": hybrid.pk})
    page = response.content.decode()
    mine, second = values_of(dense), values_of(hybrid)
    rows = rows_of(dense, admin_client, against=hybrid.pk)
    displayed = [(row.query.pk, row.values[0], row.other_value, row.gap) for row in rows]
    assert {(query, mine[query], second[query], mine[query] - second[query]) for query in mine} == set(displayed)
    gaps = [abs(gap) for *_, gap in displayed]
    assert gaps == sorted(gaps, reverse=True)
    worst = rows_of(dense, admin_client, against=hybrid.pk, order="worst")
    assert [row.values[0] for row in worst] == sorted(mine.values())

    assert f"{side_by_side(dense)}?against={hybrid.pk}&amp;query={response.context['rows'][0].query.key}" in page


def rows_of(run: Run, client: Any, **address: Any) -> list[Any]:
    """Return the rows of both pages of queries."""
    return [row for page in (1, 2) for row in client.get(change_url(run), {**address, "page": page}).context["rows"]]


def side_by_side(run: Run) -> str:
    return reverse("admin:run_side_by_side", args=[run.pk])


def test_side_by_side_walks_queries_by_largest_difference(admin_client, finished):
    dense, hybrid = run_of(finished, "dense"), run_of(finished, "hybrid")
    mine, second = values_of(dense), values_of(hybrid)
    response = admin_client.get(side_by_side(dense), {"against": hybrid.pk})
    visited = [response.context["query"].pk]
    while following := response.context["following"]:
        assert f'data-key="j" href="?against={hybrid.pk}&amp;query={following.key}"' in " ".join(
            response.content.decode().split()
        )
        response = admin_client.get(side_by_side(dense), {"against": hybrid.pk, "query": following.key})
        assert response.context["previous"].pk == visited[-1]
        visited.append(response.context["query"].pk)
    assert sorted(visited) == sorted(mine)
    gaps = [abs(mine[query] - second[query]) for query in visited]
    assert gaps == sorted(gaps, reverse=True)


def test_side_by_side_without_a_common_query_says_so(admin_client, finished):
    dense, hybrid = run_of(finished, "dense"), run_of(finished, "hybrid")
    for evaluation in Evaluation.objects.filter(run=dense):
        evaluation.values = [[None] * len(evaluation.query_ids) for _ in evaluation.measures]
        evaluation.save()
    assert "No query has a value in both runs." in text_of(
        admin_client.get(side_by_side(dense), {"against": hybrid.pk})
    )


def test_side_by_side_joins_each_document_of_both(admin_client, finished):
    dense, hybrid = run_of(finished, "dense"), run_of(finished, "hybrid")
    response = admin_client.get(side_by_side(dense), {"against": hybrid.pk})
    query = response.context["query"]
    first, second = (QueryResult.objects.get(run=run, query=query) for run in (dense, hybrid))
    for column, local, remote in zip(response.context["columns"], (first, second), (second, first), strict=True):
        assert [entry.document.pk for entry in column.documents] == local.document_ids
        assert column.value == values_of(local.run)[query.pk]
        for entry in column.documents:
            is_in_both = entry.document.pk in remote.document_ids
            assert entry.other_rank == (remote.document_ids.index(entry.document.pk) + 1 if is_in_both else None)
            assert entry.move == (entry.other_rank - entry.rank if is_in_both else 0)
    common = set(first.document_ids) & set(second.document_ids)
    ends = {line.document_id: (line.start // ROW, line.end // ROW) for line in response.context["lines"]}
    assert ends == {key: (first.document_ids.index(key), second.document_ids.index(key)) for key in common}
    assert len(re.findall(r"<path\s+class=", response.content.decode())) == len(common)
    assert count_statements(lambda: admin_client.get(side_by_side(dense), {"against": hybrid.pk})) <= 25
    Evaluation.objects.filter(run=hybrid).update(truth_hash="another")
    assert "The mapping" in text_of(admin_client.get(side_by_side(dense), {"against": hybrid.pk}))


def test_runs_hidden_from_the_user_cannot_be_compared(client, finished):
    ada, grace = (User.objects.create_user(name, is_staff=True) for name in ("ada", "grace"))
    for user in (ada, grace):
        user.user_permissions.set(Permission.objects.filter(codename__in=["view_run", "view_queryresult"]))
    hidden = run_benchmark(finished.mapping, name="hidden", matrix=MATRIX)
    Benchmark.objects.filter(pk=hidden.pk).update(owner=grace)
    client.force_login(ada)
    run, second = run_of(finished, "dense"), hidden.runs.first()
    for page in (change_url(run), side_by_side(run)):
        assert client.get(page).status_code == 200
        for against in (second.pk, "nonsense", "0" * 32):
            assert client.get(page, {"against": str(against)}).status_code == 404
        client.force_login(grace)
        assert client.get(page, {"against": str(second.pk)}).status_code == 200
        client.force_login(ada)


def test_an_external_run_says_that_no_stages_are_known(admin_client, finished):
    run = run_of(finished, "dense")
    Run.objects.filter(pk=run.pk).update(is_external=True, config={}, index=None)
    change_rankings(QueryResult.objects.filter(run=run), chunk_ids=[])
    StageList.objects.filter(lengths=None).delete()
    assert "The stages of this run are unknown" in text_of(admin_client.get(change_url(run)))
    worst = min(values_of(run).items(), key=lambda item: item[1])[0]
    page = text_of(admin_client.get(change_url(QueryResult.objects.get(run=run, query=worst))))
    assert "stages unknown, because the run is external" in page
    second = run_of(finished, "hybrid")
    assert "cannot be traced" in text_of(admin_client.get(change_url(second))) or "lists were not stored" in text_of(
        admin_client.get(change_url(second))
    )
    assert admin_client.get(change_url(run), {"against": str(second.pk)}).status_code == 200


def test_page_cost_is_independent_of_losses(admin_client, finished):
    run = run_of(finished, "hybrid", reranked=True)
    results = list(run.query_results.all())
    admin_client.get(change_url(run))
    admin_client.get(change_url(results[0]))
    assert max(count_statements(lambda result=result: admin_client.get(change_url(result))) for result in results) <= 32
    requests = {"cause": "any", "against": str(run_of(finished, "dense").pk)}
    assert count_statements(lambda: admin_client.get(change_url(run), requests)) <= 26
