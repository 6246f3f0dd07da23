"""Contents of the first page: what runs, the tasks of the user, the latest verdicts, and a trend of each dataset."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils.timezone import localtime
from redis.exceptions import RedisError

from apps.datasets.models import Dataset, DatasetVersion
from apps.execution.preparing import NEEDED, find_preparation
from apps.judging.handing import list_waiting_rounds
from apps.judging.judges import filter_led, list_led_rounds
from apps.judging.models import Round
from apps.judging.settling.progress import compute_target
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status, of_subject
from apps.operations.progress import Progress, compute_each_progress
from apps.operations.queueing import Worker, count_each_ahead, list_workers
from apps.operations.waiting import NO_WORKER, describe_isolated
from apps.records.measuring.evaluating import get_policies
from apps.records.measuring.primary import select_facts
from apps.records.models import Benchmark, GateOutcome, GateState, Repeat, Schedule
from apps.records.models.batches import load_devices
from apps.results.charts import Figure, plot_sparkline
from apps.results.first_steps import list_first_steps
from apps.retrieval.models import Index
from apps.verdicts.schedules.starting import SKIPPED
from benchbench.access import judges_alone, viewable, visible
from benchbench.decimals import counted, short_signed
from benchbench.ir.gate import Outcome
from benchbench.models import leave_out_archived
from benchbench.site.panels import change_url

MAX_ROWS = 6  # operations and datasets
MAX_TASKS = 4  # of a kind
MAX_VERDICTS = 5
MAX_POINTS = 20  # of a trend
MAX_BENCHMARKS = 60  # in the trends


def build_dashboard(user: User, *, only_work: bool = False) -> dict[str, Any]:
    """Return what `user` may see of each part; `only_work`: of what runs, which the page asks for while it runs.

    Users with the role judge alone see what they judge, and no results, so that these do not sway their grades.
    """
    work = build_work(user)
    if only_work:
        return work
    only_judges = judges_alone(user)
    steps, latest = list_first_steps(user), [] if only_judges else list_latest(user)
    return work | {
        "may_evaluate": user.has_perms(NEEDED),
        "steps": steps,
        "next_step": next((step for step in steps if not step["done"]), None),
        "tasks": list(_list_judging_tasks(user) if only_judges else list_tasks(user)),
        "benchmarks": None if only_judges else latest[:MAX_VERDICTS],
        "trends": build_trends(latest),
    }


@dataclass(frozen=True, slots=True)
class Work:
    """An active operation: its progress, the operations ahead in its queue, its workers, and why it waits."""

    operation: Operation
    progress: Progress
    ahead: int | None
    workers: int
    device: str
    waiting_for: str


def build_work(user: User) -> dict[str, object]:
    """Return the active operations that `user` may see, oldest first, and the numbers of workers; None if unknown."""
    if not user.has_perm("operations.view_operation"):
        return {}
    active = Operation.objects.filter(status__in=Status.active()).annotate(subject_name=of_subject("name"))
    operations = list(visible(active, user).order_by("created_at")[:MAX_ROWS])
    try:
        workers = list_workers()
    except RedisError:
        return {"work": _describe_work(operations, None)}
    idle = sum(worker.batch is None and not worker.waits for worker in workers)
    is_served = any(worker.takes_batches for worker in workers)
    work = _describe_work(operations, workers)
    return {"work": work, "workers": len(workers), "idle": idle, "is_served": is_served}


def _describe_work(operations: Sequence[Operation], workers: Sequence[Worker] | None) -> list[Work]:
    progress, ahead = compute_each_progress(operations), count_each_ahead(operations)
    devices = load_devices(operations)
    rows = []
    for operation in operations:
        batches = [worker.batch for worker in workers or () if worker.batch]
        running = [batch for batch in batches if batch.operation_id == operation.pk]
        reasons = [batch.waits_for for batch in running]
        waiting_for = reasons[0] if reasons and all(reasons) else ""
        serving = any(operation.queue in worker.queues and not worker.waits for worker in workers or ())
        if workers is not None and not running and not serving:
            waiting_for = NO_WORKER.format(operation.queue)
        elif operation.status == Status.PENDING and not running:
            waiting_for = describe_isolated(operation) or ""
        device = devices.get(operation.pk) or ""
        rows.append(Work(operation, progress[operation], ahead[operation], len(running), device, waiting_for))
    return rows


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the user: a sentence, and where to do it."""

    icon: str
    sentence: str
    act: str
    url: str


def list_tasks(user: User) -> Iterator[Task]:
    """Yield what waits for `user`: drafts, mappings, rounds, gates, schedules, failed benchmarks and indexes.

    Each only with the permission that its remedy needs; of each kind the latest few.
    """
    yield from _list_dataset_tasks(user)
    if user.has_perm("retrieval.change_index"):
        yield from _list_index_tasks(user)
    yield from _list_benchmark_tasks(user)


def _list_dataset_tasks(user: User) -> Iterator[Task]:
    if user.has_perm("datasets.change_dataset"):
        drafts = visible(DatasetVersion.objects.filter(frozen_at=None), user, through="dataset")
        drafts = leave_out_archived(drafts, path="dataset__tags")
        for draft in drafts.select_related("dataset").order_by("-updated_at")[:MAX_TASKS]:
            sentence = f"Version {draft.number} of {draft.dataset} is a draft: its judgments do not count yet."
            yield Task("edit_note", sentence, "Freeze or discard", change_url(draft.dataset))
    if user.has_perm("mappings.change_mapping"):
        newest = Max("dataset__versions__number", filter=Q(dataset__versions__frozen_at__isnull=False))
        mappings = leave_out_archived(visible(Mapping.objects.all(), user), path="dataset__tags")
        mappings = mappings.annotate(newest=newest).select_related("dataset_version")
        unready = (
            Q(dataset_version=None) | Q(newest__gt=F("dataset_version__number")) | Q(total_count__gt=F("mapped_count"))
        )
        for mapping in mappings.filter(unready).order_by("-updated_at")[:MAX_TASKS]:
            yield _describe_mapping(mapping)
    yield from _list_judging_tasks(user)


def _list_judging_tasks(user: User) -> Iterator[Task]:
    """Yield the open rounds that the user leads, with their progress, and those that wait for the user's grades."""
    graded = Count("slots", filter=Q(slots__done=True))
    led: QuerySet[Any] = viewable(list_led_rounds(user).filter(state=Round.State.OPEN), user).annotate(graded=graded)
    for round in led.order_by("-created_at")[:MAX_TASKS]:
        progress = f"{round.graded:,} of {counted(compute_target(round, round.graded), 'grading')} done"
        yield Task("gavel", f"The judging round “{round}” is open: {progress}.", "Open the round", change_url(round))
    if user.has_perm("judging.add_grade"):
        waiting = viewable(list_waiting_rounds(user).exclude(filter_led(user)), user)
        for round in waiting.order_by("-created_at")[:MAX_TASKS]:
            url = reverse("admin:round_judge", args=[round.pk])
            yield Task("edit_note", f"The judging round “{round}” waits for your grades.", "Judge", url)


def _list_benchmark_tasks(user: User) -> Iterator[Task]:
    if user.has_perm("benchmarks.view_benchmark"):
        judged = Repeat.objects.filter(benchmark=OuterRef("run__benchmark")).exclude(outcome="")
        failing = leave_out_archived(GateOutcome.objects.latest_failed(user), path="run__benchmark__tags")
        for outcome in failing.filter(~Exists(judged))[:MAX_TASKS]:
            missed = f"{len(outcome.missed)} of {counted(len(outcome.checks), 'check')}"
            sentence = f"The gate on “{outcome.run}” of “{outcome.run.benchmark}” failed: {missed} did not pass."
            yield Task("door_front", sentence, "See which", f"{change_url(outcome.run)}#gates")
    if user.has_perm("benchmarks.view_schedule"):
        yield from _list_turns(user)
    if user.has_perm("benchmarks.change_benchmark"):
        failed = leave_out_archived(visible(Benchmark.objects.filter(status=Status.FAILED), user))
        for benchmark in failed.order_by("-created_at")[:MAX_TASKS]:
            url = reverse("admin:benchmark_results", args=[benchmark.pk])
            yield Task("error", f"The benchmark “{benchmark}” failed.", "See why, and retry", url)


def _list_index_tasks(user: User) -> Iterator[Task]:
    """Yield the indexes whose build failed and that none replaced, with the evaluation that waits.

    A newer version replaces an index, as does one of its strategy that was created after the failure and did not fail.
    """
    same = Index.objects.filter(collection=OuterRef("collection"))
    newer = same.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    another = same.filter(strategy=OuterRef("strategy"), created_at__gt=OuterRef("failed_at"))
    another = another.exclude(status__in=(Index.Status.FAILED, Index.Status.CANCELLED))
    builds = Operation.objects.filter(kind=Operation.Kind.INDEX, subject_id=OuterRef("pk"), status=Status.FAILED)
    failed_at = Subquery(builds.order_by("-finished_at").values("finished_at")[:1])
    failed = visible(Index.objects.filter(status=Index.Status.FAILED), user).annotate(failed_at=failed_at)
    failed = failed.exclude(Exists(newer)).exclude(Exists(another))
    for index in failed.order_by("-updated_at")[:MAX_TASKS]:
        waiting = find_preparation(index, user)
        url = reverse("admin:evaluation", args=[waiting.pk]) if waiting else change_url(index)
        sentence, end, _ = index.error.partition(". ")
        reason = f"{sentence}{end.strip()}" or "see its page"
        yield Task("error", f"The index “{index}” failed: {reason}", "Try again", url)


def _list_turns(user: User) -> Iterator[Task]:
    """Yield the schedules that did not start, those whose gate is red, and those whose last repeat turned it green."""
    repeats = Repeat.objects.filter(schedule=OuterRef("pk"))
    turned_at = repeats.exclude(turned="").values("ended_at")[:1]
    last = repeats.filter(ended_at__isnull=False).values("turned")[:1]
    problem = repeats.exclude(problem__startswith=SKIPPED).values("problem")[:1]
    failed = visible(GateOutcome.objects.filter(outcome=Outcome.FAILED), user, through="run__benchmark")
    run = failed.filter(run__benchmark__repeats__schedule=OuterRef("pk")).order_by("-created_at").values("run")[:1]
    subqueries = {"turned_at": turned_at, "last": last, "problem": problem, "failed_run": run}
    annotated: QuerySet[Any] = Schedule.objects.annotate(**{name: Subquery(rows) for name, rows in subqueries.items()})
    schedules = visible(annotated, user)
    failing = Q(problem__gt="", enabled=True)
    turned = schedules.filter(Q(state=GateState.RED) | Q(last=GateState.GREEN) | failing)
    for schedule in turned.order_by("-turned_at")[:MAX_TASKS]:
        url = change_url(schedule)
        if schedule.problem and schedule.enabled:
            yield Task("error", f"The schedule “{schedule}” did not start. {schedule.problem}", "See the repeats", url)
        if schedule.state == GateState.RED or schedule.last == GateState.GREEN:
            when = f" on {localtime(schedule.turned_at):%Y-%m-%d}" if schedule.turned_at else ""
            sentence = f"The gate of the schedule “{schedule}” turned {schedule.state}{when}."
            if schedule.state == GateState.RED and schedule.failed_run and user.has_perm("benchmarks.view_run"):
                url = f"{reverse('admin:benchmarks_run_change', args=[schedule.failed_run])}#gates"
                yield Task("event_repeat", sentence, "See which checks", url)
            else:
                yield Task("event_repeat", sentence, "See the repeats", url)


def _describe_mapping(mapping: Any) -> Task:
    version, url = mapping.dataset_version, change_url(mapping)
    if version is None:
        return Task("join_inner", f"The mapping “{mapping}” is not resolved yet.", "Resolve it", url)
    if mapping.newest > version.number:
        sentence = f"The mapping “{mapping}” is resolved for version {version.number}; the newest is {mapping.newest}."
        return Task("join_inner", sentence, "Resolve it again", url)
    missing = mapping.total_count - mapping.mapped_count
    verb = "has" if missing == 1 else "have"
    sentence = f"{counted(missing, 'judgment')} of “{mapping}” {verb} no document in the collection."
    return Task("link_off", sentence, "Repair", url)


def list_latest(user: User) -> list[Any]:
    """Return the latest completed benchmarks, latest first, each with its best run as `facts`. One query."""
    completed = leave_out_archived(viewable(Benchmark.objects.filter(status=Status.COMPLETED), user)).defer("matrix")
    latest = completed.order_by(F("completed_at").desc(nulls_last=True), "-created_at")
    related = latest.select_related("dataset_version__dataset", "mapping__collection")
    return list(related.annotate(facts=select_facts(run__benchmark=OuterRef("pk")))[:MAX_BENCHMARKS])


@dataclass(frozen=True, slots=True)
class Trend:
    """The best values of a dataset's benchmarks over time; `change` is from the previous comparable one, else "".

    A line joins values that were measured against the same truth.
    """

    dataset: Dataset
    last: Any
    benchmark_count: int
    change: str
    sparkline: Figure


def build_trends(latest: Sequence[Any]) -> list[Trend]:
    """Return the trends of the datasets of benchmarks, which are latest first."""
    by_dataset: defaultdict[Dataset, list[object]] = defaultdict(list)
    for benchmark in reversed(latest):
        if benchmark.facts:
            by_dataset[benchmark.dataset_version.dataset].append(benchmark)
    trends = [_build_trend(dataset, benchmarks) for dataset, benchmarks in by_dataset.items()]
    return sorted(trends, key=lambda trend: latest.index(trend.last))[:MAX_ROWS]


def _build_trend(dataset: Dataset, benchmarks: Sequence[Any]) -> Trend:
    points = [(float(benchmark.facts["value"]), _build_key(benchmark)) for benchmark in benchmarks]
    last, key = points[-1]
    before = [value for value, truth in points[:-1] if truth == key]
    change = short_signed(last - before[-1]) if before else ""
    return Trend(dataset, benchmarks[-1], len(benchmarks), change, plot_sparkline(points[-MAX_POINTS:]))


def _build_key(benchmark: Any) -> tuple[object, ...]:
    """Return the key that comparable values share, as in the history of a dataset."""
    policies = tuple(get_policies(benchmark).items())
    truth = benchmark.dataset_version_id, benchmark.mapping_id, benchmark.facts["truth"]
    return (benchmark.primary_k, *policies, *truth)
