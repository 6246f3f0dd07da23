"""Next steps after editing a dataset: freeze the draft, resolve the mappings again, re-score finished benchmarks.

For the page of a ranking, also the reader's permission to judge its documents, and their grades in the draft.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, Model, OuterRef, QuerySet
from django.urls import reverse

from apps.benchmarks.models import Benchmark, Evaluation, QueryResult, Run
from apps.datasets.editing.drafts import count_changes, find_draft
from apps.datasets.models import Dataset, DatasetVersion, Judgment
from apps.mappings.models import Mapping
from apps.mappings.repairing import find_judgments
from apps.operations.models import Status
from benchbench.access import may_change, visible
from benchbench.site.panels import Button, build_list_url

MAX_ROWS = 5


@dataclass(frozen=True, slots=True)
class Step:
    """The state of an edit in a sentence, and buttons for the next step. They act on `row`."""

    sentence: str
    row: Model
    buttons: list[Button]

    @property
    def changelist_url(self) -> str:
        return build_list_url(type(self.row))


def list_next_steps(
    dataset: Dataset,
    user: Any,
    *,
    draft: DatasetVersion | None,
    benchmark: Benchmark | None = None,
    version: DatasetVersion | None = None,
) -> list[Step]:
    """Return the steps from a dataset's edits in its `draft` to values on them, in that order.

    They cover all mappings and benchmarks of the dataset that the user may see (the latest few), or only `benchmark`
    and its mapping. In that case they also link its values on the newest version, unless that is `version`. Buttons are
    limited to the user's permissions.
    """
    steps = [_build_draft_step(draft, user)] if draft else []
    newest = dataset.versions.filter(frozen_at__isnull=False).order_by("-number").first()
    if newest is None:
        return steps
    mappings = visible(Mapping.objects.filter(dataset=dataset), user).select_related("dataset_version")
    benchmarks = _find_outdated(visible(Benchmark.objects.filter(mapping__dataset=dataset), user), newest)
    if benchmark is not None:
        mappings, benchmarks = mappings.filter(pk=benchmark.mapping_id), benchmarks.filter(pk=benchmark.pk)
    stale = mappings.filter(dataset_version__number__lt=newest.number)[:MAX_ROWS]
    return [
        *steps,
        *(_build_resolving_step(mapping, newest, user) for mapping in stale),
        *(_build_rescoring_step(outdated, newest, user) for outdated in benchmarks[:MAX_ROWS]),
        *(_build_values_steps(benchmark, newest) if benchmark and version != newest else ()),
    ]


def _find_outdated(benchmarks: QuerySet[Benchmark], newest: DatasetVersion) -> QuerySet[Benchmark]:
    """Return the benchmarks with completed runs and a mapping resolved for `newest`, but without values on it."""
    completed = Run.objects.filter(benchmark=OuterRef("pk"), status=Run.Status.COMPLETED)
    scored = Evaluation.objects.filter(run__benchmark=OuterRef("pk"), dataset_version=newest)
    older = benchmarks.exclude(status=Status.RUNNING).filter(
        Exists(completed),
        ~Exists(scored),
        dataset_version__number__lt=newest.number,
        mapping__dataset_version__number__gte=newest.number,
    )
    return older.select_related("dataset_version").order_by("-created_at")


def _build_draft_step(draft: DatasetVersion, user: Any) -> Step:
    changes = count_changes(draft)
    buttons = []
    if may_change(draft.dataset, user):
        if changes.total:
            page = reverse("admin:dataset_freeze", args=[draft.dataset_id])
            label = f"Freeze as version {draft.number} …"
            buttons.append(Button(label, "lock", href=page, primary=True, returns=True))
        discard = reverse("admin:datasets_datasetversion_delete", args=[draft.pk])
        buttons.append(Button("Discard draft", "delete", href=discard))
    sentence = f"Draft of version {draft.number} of {draft.dataset}, with {changes.sentence}."
    return Step(f"{sentence} Values do not change until you freeze it.", draft.dataset, buttons)


def _build_resolving_step(mapping: Mapping, newest: DatasetVersion, user: Any) -> Step:
    resolved_for = mapping.dataset_version
    assert resolved_for is not None
    label = "Resolve the mapping again"
    buttons = [Button(label, "join_inner", "resolve_selected", primary=True)] if may_change(mapping, user) else []
    return Step(
        f"Version {newest.number} is frozen, but the mapping “{mapping}” was resolved for version "
        f"{resolved_for.number}: resolve it again to find the document of each judgment.",
        mapping,
        buttons,
    )


def _build_rescoring_step(benchmark: Benchmark, newest: DatasetVersion, user: Any) -> Step:
    label = f"Re-score on v{newest.number}"
    buttons = [Button(label, "rule", "rescore_selected", primary=True)] if may_change(benchmark, user) else []
    return Step(
        f"The benchmark “{benchmark}” has values on version {benchmark.dataset_version.number}: "
        f"re-score it on version {newest.number} from its stored rankings, without searching again.",
        benchmark,
        buttons,
    )


def _build_values_steps(benchmark: Benchmark, newest: DatasetVersion) -> Iterator[Step]:
    scored = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=newest)
    if newest.number > benchmark.dataset_version.number and scored.exists():
        url = f"{reverse('admin:benchmark_results', args=[benchmark.pk])}?version={newest.number}"
        sentence = f"The benchmark “{benchmark}” is re-scored on version {newest.number}."
        yield Step(sentence, benchmark, [Button(f"Values on v{newest.number}", "leaderboard", href=url)])


@dataclass(frozen=True, slots=True)
class Judging:
    """The reader's permission to judge the documents of a ranking, and the draft's judgments of them.

    `drafted`: the judgments of the query in the draft by document; None without a draft that has the query.
    """

    result: QueryResult
    permitted: bool
    drafted: dict[int, list[Judgment]] | None = None
    steps: list[Step] = field(default_factory=list)

    def change(self, document_id: int, grade: int | None) -> str:
        """Return the draft's grade of a document in words; "" if it equals `grade`, the one on the page."""
        if self.drafted is None:
            return ""
        grades = [judgment.grade for judgment in self.drafted.get(document_id, [])]
        drafted = max(grades, default=None)
        if drafted == grade:
            return ""
        return "in the draft: no judgment" if drafted is None else f"in the draft: {drafted}"


def build_judging(result: QueryResult, user: Any, *, version: DatasetVersion | None = None) -> Judging:
    """Return the reader's options for judging a ranking whose query is in the newest version.

    They are empty if the reader may not see the dataset. `version` is the version of the page's values.
    """
    mapping = result.run.benchmark.mapping
    dataset = mapping.dataset
    permitted = result.query.until is None and may_change(dataset, user)
    if not permitted and not visible(type(dataset).objects.filter(pk=dataset.pk), user).exists():
        return Judging(result, permitted=False)
    draft = find_draft(dataset)
    return Judging(
        result,
        permitted=permitted,
        drafted=find_judgments(mapping, draft, result.query) if draft and result.query.until is None else None,
        steps=list_next_steps(dataset, user, draft=draft, benchmark=result.run.benchmark, version=version),
    )
