"""The five steps to the first verdict, which the first page shows until they are done."""

from dataclasses import dataclass

from django.db.models import Model, QuerySet
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations.models import Status
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from benchbench.access import AnyUser, visible
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the main job, on one model. The rows of `ready` count as done."""

    title: str
    sentence: str
    act: str
    ready: QuerySet[Model]
    noun: str

    def for_user(self, user: AnyUser) -> dict[str, object]:
        """Return the step for `user`: the count of rows and the links; links that are forbidden are ""."""
        meta = self.ready.model._meta
        name = f"{meta.app_label}_{meta.model_name}"
        count = visible(self.ready, user).count()
        may_view, may_add = (user.has_perm(f"{meta.app_label}.{verb}_{meta.model_name}") for verb in ("view", "add"))
        return {
            **attributes(self, "title", "sentence", "act", "noun"),
            "done": count > 0,
            "count": count,
            "list_url": reverse(f"admin:{name}_changelist") if may_view else "",
            "act_url": reverse(f"admin:{name}_add") if may_add else "",
        }


STEPS = (
    Step(
        "Add documents",
        "A collection holds the documents to search. Upload a corpus file, or import a folder with a command.",
        "Upload a collection",
        Collection.objects.filter(kind=Collection.Kind.DOCUMENTS),
        "collection",
    ),
    Step(
        "Make them searchable",
        "An index cuts documents into chunks and encodes them. Build one for each setup that you want to compare.",
        "Build an index",
        Index.objects.filter(status=Index.Status.READY),
        "ready index",
    ),
    Step(
        "Add judged queries",
        "A dataset holds queries and relevance judgments: a grade for each judged document.",
        "Upload a dataset",
        Dataset.objects.all(),
        "dataset",
    ),
    Step(
        "Map and resolve",
        "A mapping matches each judgment to a document of the collection, and lists judgments without a match.",
        "Map a dataset",
        Mapping.objects.exclude(status=Mapping.Status.PENDING),
        "resolved mapping",
    ),
    Step(
        "Benchmark",
        "Choose configurations, start the benchmark, and see which one is best.",
        "New benchmark",
        Benchmark.objects.filter(status=Status.COMPLETED),
        "finished benchmark",
    ),
)


def list_first_steps(user: AnyUser) -> list[dict[str, object]]:
    """Return the steps with the progress of `user`; [] once all are done."""
    steps = [step.for_user(user) for step in STEPS]
    return [] if all(step["done"] for step in steps) else steps
