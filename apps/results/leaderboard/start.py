"""Contents of the first page: five steps from documents to a result, and the work that is going on."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse

from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status, of_subject
from apps.operations.progress import progress_of_each
from apps.results.leaderboard.runs import Row, best_runs, primary_measure
from apps.retrieval.models import Index
from benchbench.access import visible

LATEST = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the main job, on one model. What counts as done are the rows of `ready`."""

    title: str
    sentence: str
    act: str
    ready: QuerySet[Any]
    noun: str

    def for_user(self, user: Any) -> dict[str, Any]:
        """Return what the page shows to `user`: how many there are, and where to go. Blank where that is forbidden."""
        meta = self.ready.model._meta
        name = f"{meta.app_label}_{meta.model_name}"
        count = visible(self.ready, user).count()
        may_view, may_add = (user.has_perm(f"{meta.app_label}.{verb}_{meta.model_name}") for verb in ("view", "add"))
        return {
            "title": self.title,
            "sentence": self.sentence,
            "act": self.act,
            "done": count > 0,
            "count": count,
            "noun": self.noun,
            "list_url": reverse(f"admin:{name}_changelist") if may_view else "",
            "act_url": reverse(f"admin:{name}_add") if may_add else "",
        }


STEPS = (
    Step(
        "Bring documents",
        "A collection is what is searched. Upload a corpus file, or import a folder by command.",
        "Upload a collection",
        Collection.objects.filter(kind=Collection.Kind.DOCUMENTS),
        "collection",
    ),
    Step(
        "Make them searchable",
        "An index cuts documents into chunks and encodes them; build as many kinds as you want to compare.",
        "Build an index",
        Index.objects.filter(status=Index.Status.READY),
        "ready index",
    ),
    Step(
        "Bring judged queries",
        "A dataset says what people ask, which documents answer it, and how well.",
        "Upload a dataset",
        Dataset.objects.all(),
        "dataset",
    ),
    Step(
        "Map and resolve",
        "A mapping finds the document that each judgment means, or says why there is none.",
        "Map a dataset",
        Mapping.objects.exclude(status=Mapping.Status.PENDING),
        "resolved mapping",
    ),
    Step(
        "Benchmark",
        "Choose configurations, start, watch, and read which one finds more.",
        "New benchmark",
        Benchmark.objects.filter(status=Status.COMPLETED),
        "finished benchmark",
    ),
)


def start_context(user: Any) -> dict[str, Any]:
    """Return the steps with how far `user` is, the latest benchmarks with their best run, and the work under way."""
    steps = [step.for_user(user) for step in STEPS]
    return {
        "steps": steps,
        "next_step": next((step for step in steps if not step["done"]), None),
        "benchmarks": _latest(user),
        "at_work": list(progress_of_each(_at_work(user)).items()),
    }


def _latest(user: Any) -> list[tuple[Benchmark, Row | None, float | None]]:
    """Return the latest benchmarks, each with its best completed run and the primary measure of that."""
    if not user.has_perm("benchmarks.view_benchmark"):
        return []
    benchmarks = Benchmark.objects.select_related("mapping__dataset", "mapping__collection")
    latest = list(visible(benchmarks, user).order_by("-created_at")[:LATEST])
    best = best_runs(latest)
    rows = [best.get(benchmark.pk) for benchmark in latest]
    return [
        (benchmark, row, row.values[primary_measure(benchmark)] if row else None)
        for benchmark, row in zip(latest, rows, strict=True)
    ]


def _at_work(user: Any) -> list[Operation]:
    if not user.has_perm("operations.view_operation"):
        return []
    active = Operation.objects.filter(status__in=Status.active()).annotate(subject_name=of_subject("name"))
    return list(visible(active, user).order_by("created_at")[:LATEST])
