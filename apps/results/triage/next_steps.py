"""Next steps after editing a dataset: freeze the draft, then bring mappings and benchmarks to the new version.

For the page of a ranking, also the reader's permission to judge its documents, and their grades in the draft.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.urls import reverse

from apps.datasets.editing.drafts import count_changes, find_draft
from apps.datasets.models import Dataset, DatasetVersion, Judgment
from apps.mappings.repairing import find_judgments
from apps.records.models import Benchmark, Evaluation, QueryResult
from apps.results.triage.updating import find_outdated
from benchbench.access import AnyUser, may_change, visible
from benchbench.decimals import counted
from benchbench.site.panels import Button


@dataclass(frozen=True, slots=True)
class Step:
    """The state of an edit in a sentence, and buttons for the next step; those with an action post to `post_url`."""

    sentence: str
    buttons: list[Button]
    post_url: str = ""


def list_next_steps(
    dataset: Dataset,
    user: AnyUser,
    draft: DatasetVersion | None,
    *,
    may_edit: bool = False,
    benchmark: Benchmark | None = None,
    version: DatasetVersion | None = None,
) -> list[Step]:
    """Return the steps from a dataset's edits in its `draft` to values on them, in that order.

    They cover all mappings and benchmarks of the dataset that the user may see. With `benchmark` they also link its
    values on the newest version, unless that is `version`. `may_edit`: the user may change the dataset. Buttons are
    limited to the user's permissions.
    """
    steps = [_build_draft_step(draft, may_edit=may_edit)] if draft else []
    newest = dataset.versions.filter(frozen_at__isnull=False).order_by("-number").first()
    if newest is None:
        return steps
    return [
        *steps,
        *_build_update_steps(dataset, newest, user),
        *(_build_values_steps(benchmark, newest) if benchmark and version != newest else ()),
    ]


def _build_draft_step(draft: DatasetVersion, *, may_edit: bool) -> Step:
    changes = count_changes(draft)
    buttons = []
    if may_edit:
        if changes.total:
            page = reverse("admin:dataset_freeze", args=[draft.dataset_id])
            buttons.append(Button("Freeze, resolve, re-score …", "lock", href=page, primary=True, returns=True))
        discard = reverse("admin:datasets_datasetversion_delete", args=[draft.pk])
        buttons.append(Button("Discard draft", "delete", href=discard))
    sentence = f"Draft of version {draft.number} of {draft.dataset}, with {changes.sentence}."
    return Step(f"{sentence} Values do not change until you freeze it.", buttons)


def _build_update_steps(dataset: Dataset, newest: DatasetVersion, user: AnyUser) -> Iterator[Step]:
    outdated = find_outdated(dataset, user, newest.number)
    mappings, benchmarks = outdated.mappings.count(), outdated.benchmarks.count()
    if mappings or benchmarks:
        older = [counted(number, noun) for number, noun in ((mappings, "mapping"), (benchmarks, "benchmark")) if number]
        label = "Resolve and re-score" if mappings else f"Re-score on v{newest.number}"
        permitted = user.has_perm("mappings.change_mapping" if mappings else "benchmarks.change_benchmark")
        yield Step(
            f"Version {newest.number} is frozen. Not yet updated to it: {' and '.join(older)}. "
            "Re-scoring uses the stored rankings, without searching again.",
            [Button(label, "rule", "update", primary=True)] if permitted else [],
            reverse("admin:dataset_moved", args=[dataset.pk]),
        )


def _build_values_steps(benchmark: Benchmark, newest: DatasetVersion) -> Iterator[Step]:
    scored = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=newest)
    if newest.number > benchmark.dataset_version.number and scored.exists():
        url = f"{reverse('admin:benchmark_results', args=[benchmark.pk])}?version={newest.number}"
        sentence = f"The benchmark “{benchmark}” is re-scored on version {newest.number}."
        yield Step(sentence, [Button(f"Values on v{newest.number}", "leaderboard", href=url)])


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


def build_judging(result: QueryResult, user: AnyUser, *, version: DatasetVersion | None = None) -> Judging:
    """Return the reader's options for judging a ranking whose query is in the newest version.

    They are empty if the reader may not see the dataset. `version` is the version of the page's values.
    """
    mapping = result.run.benchmark.mapping
    dataset = mapping.dataset
    may_edit = may_change(dataset, user)
    permitted = result.query.until is None and may_edit
    if not permitted and not visible(type(dataset).objects.filter(pk=dataset.pk), user).exists():
        return Judging(result, permitted=False)
    draft = find_draft(dataset)
    return Judging(
        result,
        permitted=permitted,
        drafted=find_judgments(mapping, draft, result.query) if draft and result.query.until is None else None,
        steps=list_next_steps(dataset, user, draft, may_edit=may_edit, benchmark=result.run.benchmark, version=version),
    )
