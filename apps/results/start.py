"""What the first page shows: five steps from documents to a result, and what goes on."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.urls import reverse

from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.operations.progress import progress_of
from apps.results.leaderboard import leaderboard
from apps.retrieval.models import Index
from benchbench.access import visible

LATEST = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the main job. It is done once there is something to show for it."""

    title: str
    sentence: str
    icon: str
    list_url: str
    act_label: str
    act_url: str
    count: int
    noun: str

    @property
    def done(self) -> bool:
        return self.count > 0


def start_context(user: Any) -> dict[str, Any]:
    """Return the steps with how far `user` is, the latest benchmarks with their best run, and the work under way."""
    steps = _steps(user)
    latest = visible(Benchmark.objects.select_related("mapping__dataset", "mapping__collection"), user)
    benchmarks = latest.order_by("-created_at")[:LATEST] if user.has_perm("benchmarks.view_benchmark") else []
    active = visible(Operation.objects.filter(status__in=Status.active()), user).order_by("created_at")[:LATEST]
    return {
        "steps": steps,
        "next_step": next((step for step in steps if not step.done), None),
        "benchmarks": [(benchmark, leaderboard(benchmark)) for benchmark in benchmarks],
        "at_work": [(operation, progress_of(operation)) for operation in active],
    }


def _steps(user: Any) -> list[Step]:
    def count(queryset: Any) -> int:
        return visible(queryset, user).count()

    collections = count(Collection.objects.filter(kind=Collection.Kind.DOCUMENTS))
    resolved = Mapping.objects.filter(~Q(status=Mapping.Status.PENDING))
    return [
        _step(
            "Bring documents",
            "A collection is what is searched. Upload a corpus file, or import a folder by command.",
            "library_books",
            "collections_collection",
            "Upload a collection",
            collections,
            ("collection", "collections"),
        ),
        _step(
            "Make them searchable",
            "An index cuts documents into chunks and encodes them; build as many kinds as you want to compare.",
            "manage_search",
            "retrieval_index",
            "Build an index",
            count(Index.objects.filter(status=Index.Status.READY)),
            ("ready index", "ready indexes"),
        ),
        _step(
            "Bring judged queries",
            "A dataset says what people ask, and which documents answer it how well.",
            "fact_check",
            "datasets_dataset",
            "Upload a dataset",
            count(Dataset.objects.all()),
            ("dataset", "datasets"),
        ),
        _step(
            "Map and resolve",
            "A mapping finds the document that each judgment means, or says why there is none.",
            "join_inner",
            "mappings_mapping",
            "Map a dataset",
            count(resolved),
            ("resolved mapping", "resolved mappings"),
        ),
        _step(
            "Benchmark",
            "Choose configurations, start, watch, and read which one finds more.",
            "leaderboard",
            "benchmarks_benchmark",
            "New benchmark",
            count(Benchmark.objects.filter(status=Status.COMPLETED)),
            ("finished benchmark", "finished benchmarks"),
        ),
    ]


def _step(title: str, sentence: str, icon: str, name: str, act: str, count: int, nouns: tuple[str, str]) -> Step:
    list_url, act_url = reverse(f"admin:{name}_changelist"), reverse(f"admin:{name}_add")
    return Step(title, sentence, icon, list_url, act, act_url, count, nouns[count != 1])
