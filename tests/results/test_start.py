"""The first page: what runs, what waits, the latest verdicts, the trends."""

import html
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models import DateTimeField, Value
from django.urls import reverse
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.judging.models import Round
from apps.operations import progress, queueing
from apps.operations.models import Batch, Operation
from apps.records.models import Benchmark, Evaluation, GateOutcome, Preparation
from apps.results.charts import plot_sparkline
from apps.results.dashboard import build_trends, build_work, list_latest, list_tasks
from apps.retrieval.models import Index
from apps.verdicts.comparing import compare_runs
from apps.verdicts.sentences import describe_verdict
from benchbench.decimals import counted, figure
from benchbench.site.panels import change_url
from tests.drafts import set_judgment
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round
from tests.results.compared import make_compared, make_queries, noisy
from tests.site import count_statements, results_url, text_of

START = reverse("admin:index")
ENDED = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_compared(make_queries(40), noisy([0.3, 0.5, 0.49], 40), completed_at=ENDED)


def add_operation(benchmark: Benchmark, *states: str, now: datetime = ENDED, **fields: Any) -> Operation:
    """Return an operation with a batch in each state; what is done was begun 40 seconds before `now`."""
    operation = Operation.objects.create(kind="benchmark", subject_id=benchmark.pk, total_units=100, **fields)
    for index, state in enumerate(states):
        lease = {"lease_owner": "host:1:a", "lease_until": timezone.now() + timedelta(minutes=1)}
        result = {"made_by": {"device": "cuda (H100)"}} if state == "done" else {}
        finished = {"done_units": 40, "started_at": now - timedelta(seconds=40)} if state == "done" else {}
        options = {"result": result, **finished, **(lease if state == "running" else {})}
        Batch.objects.create(operation=operation, ordinal=index, units=40, state=state, **options)
    return operation


def test_the_steps_are_shown_until_they_are_done(admin_client, benchmark):
    assert "Five steps" in admin_client.get(START).text
    assert admin_client.get(START).context["next_step"]["title"] == "Make them searchable"
    collection = benchmark.mapping.collection
    chunk_set = collection.chunk_sets.create(strategy="flat", fingerprint="f")
    Index.objects.create(collection=collection, name="a", status="ready", chunk_set=chunk_set, fingerprint="f")
    assert "Five steps" not in admin_client.get(START).text


def test_start_shows_the_sentence_of_each_verdict(admin_client, benchmark):
    page = admin_client.get(START).text
    address = f"{results_url(benchmark, 'verdict')}?brief=1"
    best = benchmark.runs.get(run_order=2)
    assert f'hx-get="{address}"' in page
    assert change_url(best) in page
    assert f'<span class="bb-figure">{figure(best.evaluations.get().means["nDCG@10"])}</span>' in page
    brief = admin_client.get(address)
    assert " ".join(text_of(brief).split()) == describe_verdict(compare_runs(benchmark.runs.all()))
    assert "hx-swap-oob" not in brief.text


def test_running_work_shows_place_workers_and_device(admin_user, admin_client, benchmark, monkeypatch):
    now = timezone.now()
    monkeypatch.setattr(progress, "Now", lambda: Value(now, DateTimeField()))
    queueing.announce_worker("host:1:a", ["default"])
    running = add_operation(benchmark, "done", "running", status="running", now=now)
    second, third = (make_benchmark(benchmark.mapping, name=name) for name in ("second", "third"))
    for waiting in (second, third):
        add_operation(waiting, "pending")
    try:
        work = build_work(admin_user)
        rows = work["work"]
        assert (work["workers"], work["idle"]) == (1, 0)
        assert [(row.ahead, row.workers, row.device) for row in rows] == [
            (None, 1, "cuda (H100)"),
            (0, 0, ""),
            (1, 0, ""),
        ]
        assert [queueing.count_ahead(row.operation) for row in rows] == [None, 0, 1]
        assert rows[0].progress.percent == 40
        assert rows[0].progress.eta_seconds == 60
        displayed = " ".join(text_of(admin_client.get(START)).split())
        assert rows[0].progress.words == "40.0 %, 40 of 100 searches and reranked pairs"
        assert "40 of 100 searches and reranked pairs about 1 min 0 s left 1 worker cuda (H100)" in displayed
        assert "queued behind 1 operation" in displayed
        piece = admin_client.get(START, {"part": "work"})
        assert str(running.pk) in piece.text
        assert "benchmarks" not in piece.context, "a refresh loads only what runs"
    finally:
        queueing.retire_worker("host:1:a", ["default"])
    assert build_work(admin_user)["work"][1].waiting_for.startswith("No worker serves the queue default")


def test_start_counts_the_workers_of_their_page(admin_client):
    announced = {"host:1:a": ["quick"], "host:1:b": ["default"]}
    try:
        for number, (name, queues) in enumerate(announced.items(), start=1):
            queueing.announce_worker(name, queues)
            start = " ".join(text_of(admin_client.get(START)).split())
            assert len(admin_client.get(reverse("admin:workers")).context["rows"]) == number
            assert f"{counted(number, 'worker')}, {number} idle" in start
            assert ("before you start work" in start) == (number == 1), "a quick worker takes no batches"
    finally:
        for name, queues in announced.items():
            queueing.retire_worker(name, queues)


def test_what_waits_is_listed_with_its_remedy(make_staff, benchmark):
    dataset = benchmark.mapping.dataset
    ada, viewer = make_staff("ada"), make_staff("viewer", may=("view",))
    assert list(list_tasks(ada)) == []
    set_judgment(dataset, "q0001", {"document_id": "d1"}, 0)
    type(benchmark.mapping).objects.update(mapped_count=39, total_count=40)
    make_round(benchmark.runs.all()[0], name="pool", items=3)
    Benchmark.objects.update(status="failed")
    run = benchmark.runs.all()[0]
    checks = [{"name": name, "outcome": outcome} for name, outcome in (("a", "failed"), ("b", "passed"))]
    GateOutcome.objects.create(run=run, rules={"floors": {}}, outcome="failed", checks=checks)
    tasks = [(task.act, task.url, task.sentence) for task in list_tasks(ada)]
    assert [task[:2] for task in tasks] == [
        ("Freeze or discard", change_url(dataset)),
        ("Repair", change_url(benchmark.mapping)),
        ("Open the round", change_url(run.rounds.get())),
        ("See which", f"{change_url(run)}#gates"),
        ("See why, and retry", results_url(benchmark)),
    ]
    assert tasks[1][2].startswith("1 judgment of “questions” has no document")
    assert "0 of 3 gradings done" in tasks[2][2]
    Round.objects.update(budget=2)
    assert any("0 of 2 gradings done" in task.sentence for task in list_tasks(ada)), "as the list of rounds counts"
    assert "failed: 1 of 2 checks did not pass" in tasks[3][2]
    assert [task.act for task in list_tasks(viewer)] == ["See which"]
    DatasetVersion.objects.filter(frozen_at=None).update(frozen_at=ENDED, content_hash="h")
    assert next(task.act for task in list_tasks(ada)) == "Resolve it again"
    for model in (type(dataset), type(benchmark.mapping), Benchmark):
        model.objects.update(owner=User.objects.get_or_create(username="grace")[0])
    assert [task.act for task in list_tasks(ada)] == ["Open the round"]


def test_who_only_judges_sees_no_results(client, benchmark, roles):
    checks = [{"name": "a", "outcome": "failed"}]
    GateOutcome.objects.create(run=benchmark.runs.all()[0], rules={}, outcome="failed", checks=checks)
    judge = User.objects.create_user("jim", is_staff=True)
    judge.groups.add(Group.objects.get(name="judge"))
    pool = make_round(benchmark.runs.all()[0], name="pool", judges=[judge], items=3)
    Benchmark.objects.update(owner=None)
    client.force_login(judge)
    closed = [reverse("admin:app_list", args=["benchmarks"]), results_url(benchmark), change_url(benchmark.mapping)]
    closed += [reverse(f"admin:{name}_changelist") for name in ("benchmarks_benchmark", "datasets_dataset")]
    assert {path: client.get(path).status_code for path in closed if client.get(path).status_code < 400} == {}
    for path in (reverse("admin:round_judge", args=[pool.pk]), reverse("admin:my_grades"), change_url(pool)):
        assert client.get(path).status_code == 200, path
    page = text_of(client.get(START))
    assert "“pool” waits for your grades" in page
    assert not any(words in page for words in ("Latest verdicts", "Datasets over time", "The gate on", str(benchmark)))
    judge.groups.add(Group.objects.get(name="viewer"))
    assert {client.get(path).status_code for path in closed} == {200}
    page = text_of(client.get(START))
    assert all(words in page for words in ("Latest verdicts", "Datasets over time", "The gate on", str(benchmark)))


def test_a_failed_index_is_a_task(make_staff, benchmark):
    ada, grace, viewer = make_staff("ada"), make_staff("grace"), make_staff("viewer", may=("view",))
    built = Index.objects.create(
        collection=benchmark.mapping.collection,
        name="misspelt",
        status="failed",
        error="Model x was not found. Check it.",
    )
    (task,) = list_tasks(ada)
    assert (task.act, task.url) == ("Try again", change_url(built))
    assert task.sentence == "The index “misspelt” failed: Model x was not found."
    assert list(list_tasks(viewer)) == []
    waiting = Preparation.objects.create(
        started_by=ada, mapping=benchmark.mapping, index_ids=[built.pk], question="modes"
    )
    assert [task.url for task in list_tasks(ada)] == [reverse("admin:evaluation", args=[waiting.pk])]
    assert [task.url for task in list_tasks(grace)] == [change_url(built)], "the evaluation is not hers"
    Index.objects.create(collection=built.collection, name="misspelt", version=2)
    assert list(list_tasks(ada)) == []


def test_an_index_created_after_a_failure_replaces_it(make_staff, benchmark):
    ada, collection = make_staff("ada"), benchmark.mapping.collection
    failed, _ = [Index.objects.create(collection=collection, name=name, status=name) for name in ("failed", "indexing")]
    assert len(list(list_tasks(ada))) == 1, "the second was made before the first failed"
    Operation.objects.create(
        kind="index", subject_id=failed.pk, status="failed", queue="default", finished_at=timezone.now()
    )
    assert len(list(list_tasks(ada))) == 1
    Index.objects.create(collection=collection, name="broken", status="failed")
    Index.objects.create(collection=collection, name="levels", status="indexing", strategy="lod_embed")
    assert len(list(list_tasks(ada))) == 2, "neither is in its stead"
    Index.objects.create(collection=collection, name="corrected", status="indexing")
    assert [task.sentence.partition(" failed")[0] for task in list_tasks(ada)] == ["The index “broken”"]


def test_trends_join_comparable_best_values(admin_user, make_staff, benchmark):
    for days, value in ((1, 0.6), (2, 0.7)):
        make_benchmark(benchmark.mapping, [0.1, value], name=f"{days}", completed_at=ENDED + timedelta(days=days))
    first = max(Evaluation.objects.filter(run__benchmark=benchmark), key=lambda row: row.means["nDCG@10"])
    [trend] = build_trends(list_latest(admin_user))
    assert (trend.benchmark_count, trend.last.facts["value"], trend.change) == (3, 0.7, "+.1000")
    assert len(trend.sparkline["lines"]) == 1
    Evaluation.objects.filter(run__benchmark__name="2").update(truth_hash="another")
    [trend] = build_trends(list_latest(admin_user))
    assert (trend.last.facts["value"], trend.change) == (0.7, ""), (
        "a value against another truth has nothing to differ from"
    )
    assert [line.count(",") for line in trend.sparkline["lines"]] == [2]
    heights = [dot[1] for dot in trend.sparkline["dots"]]
    assert heights == sorted(heights, reverse=True)
    assert first.means["nDCG@10"] < 0.6
    Benchmark.objects.update(owner=User.objects.create_user("grace"))
    assert list_latest(make_staff("ada")) == []


def test_a_sparkline_is_drawn_to_scale():
    line = plot_sparkline([(0.2, "a"), (0.4, "a"), (0.3, "b")], width=108, height=28)
    assert line["dots"] == [(4.0, 24.0), (54.0, 4.0), (104.0, 14.0)]
    assert line["lines"] == ["4.0,24.0 54.0,4.0"]
    assert plot_sparkline([(0.5, "a")], width=108, height=28)["dots"] == [(54.0, 14.0)]
    assert plot_sparkline([(0.5, "a")] * 2)["lines"] == ["4.0,22.0 236.0,22.0"]


def test_start_has_a_bounded_number_of_statements(admin_client, benchmark):
    for number in range(8):
        dataset = make_dataset({"q": [({"document_id": "x"}, 1)]}, name=f"d{number}")
        shelf = make_collection(f"c{number}", [{"title": "Pears"}])
        mapping = make_mapping(dataset, shelf, name=f"m{number}")
        second = make_benchmark(mapping, [0.1, 0.2], name=f"b{number}", completed_at=ENDED)
        add_operation(second, "pending")
        set_judgment(mapping.dataset, "q", {"document_id": "y"}, 1)
        make_round(second.runs.all()[0], name=f"r{number}")
    assert count_statements(lambda: admin_client.get(START)) <= 21


def test_names_on_start_are_escaped(admin_client, benchmark):
    hostile = "<script>alert(1)</script>"
    type(benchmark.mapping.dataset).objects.update(name=hostile)
    Benchmark.objects.update(name=hostile)
    add_operation(benchmark, "pending")
    page = admin_client.get(START).text
    assert hostile not in page
    assert html.escape(hostile) in page
