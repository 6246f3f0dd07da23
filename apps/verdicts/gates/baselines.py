"""Baselines: approval and retirement of the runs that later runs of a dataset are compared with."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from apps.datasets.models import Dataset
from apps.records.measuring.again import lock_rankings
from apps.records.models import Baseline, Benchmark, Run, Schedule
from benchbench.access import AnyUser, usable_for, visible
from benchbench.database.failures import refresh
from benchbench.deleting import delete_all, referring
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import find_rows


class BaselineError(ConflictError):
    """The state of the run or baseline does not allow the action."""

    code = "baseline"


@referring("The baseline")
def approve(run: Run, *, name: str, reason: str, by: User) -> Baseline:
    """Make a completed run the current baseline `name` of its dataset, and retire the previous one of that name.

    `reason` says why the run qualifies; `by` is the user who approves it. Raises BaselineError if the run did not
    complete, lost too many queries to be ranked, or is the current baseline of that name. Also raises it if `by` may
    not see the previous baseline. Raises RankingsDeletedError, and BenchbenchError for a blank name or reason.
    """
    name, reason = name.strip(), reason.strip()
    for field, text in (("name", name), ("reason", reason)):
        if not text:
            raise BenchbenchError(f"A baseline needs a {field} for later readers.", field=field)
    if run.status != Run.Status.COMPLETED:
        raise BaselineError(f'The run "{run}" is {run.status}: only a completed run can be a baseline.')
    lock_rankings([run])
    evaluation = run.evaluations.filter(dataset_version=run.benchmark.dataset_version_id).first()
    if evaluation is not None and evaluation.unranked:
        raise BaselineError(f'The run "{run}" cannot be a baseline. {evaluation.unranked}')
    # Lock the dataset, so that the later of two concurrent approvals retires the earlier.
    dataset = Dataset.objects.select_for_update().get(versions=run.benchmark.dataset_version_id)
    previous = list_baselines(dataset).filter(name=name).first()
    if previous is not None and previous.run_id == run.pk:
        raise BaselineError(f'The run "{run}" is already the baseline "{name}" of {dataset}.', field="name")
    if previous is not None:
        if not visible(list_baselines(dataset).filter(pk=previous.pk), by, through="run__benchmark").exists():
            raise BaselineError("A baseline that you may not see has this name: choose another name.", field="name")
        retire(previous, by=by)
    return Baseline.objects.create(dataset=dataset, run=run, name=name, reason=reason, approved_by=by)


def retire(baseline: Baseline, *, by: User) -> None:
    """Retire a baseline, and keep its row with the time. Raises BaselineError if it is already retired.

    One conditional UPDATE, so that one of two concurrent calls wins.
    """
    now = timezone.now()
    changed = Baseline.objects.filter(pk=baseline.pk, retired_at=None).update(
        retired_at=now, retired_by=by, updated_at=now
    )
    refresh(baseline)
    if not changed:
        raise BaselineError(f'The baseline "{baseline.name}" of {baseline.dataset} is already retired.')


def delete_baseline(baseline: Baseline) -> None:
    """Delete a retired baseline, so that its benchmark can be deleted. Raises BaselineError for a current one."""
    if not delete_all(Baseline.objects.filter(pk=baseline.pk, retired_at__isnull=False)):
        raise BaselineError(f'The baseline "{baseline.name}" of {baseline.dataset} is current: retire it first.')


def list_baselines(dataset: Dataset) -> QuerySet[Baseline]:
    """Return the baselines of a dataset that are not retired, by name."""
    return Baseline.objects.filter(dataset=dataset, retired_at=None).select_related("run__benchmark").order_by("name")


def load_baseline_names(benchmark: Benchmark) -> dict[UUID, list[str]]:
    """Return the names under which runs of a benchmark are current baselines, by run id."""
    names: dict[UUID, list[str]] = {}
    current = Baseline.objects.filter(run__benchmark=benchmark, retired_at=None).order_by("name")
    for run_id, name in current.values_list("run_id", "name"):
        names.setdefault(run_id, []).append(name)
    return names


def find_baseline(
    name_or_id: str, dataset: Dataset, *, user: AnyUser | None = None, target: Schedule | None = None
) -> Baseline:
    """Return the current baseline of `dataset` whose name or id is `name_or_id`. Raises an error without one.

    With `user`, ignore baselines that they may not see; with `target`, such as a schedule, those that its owner or its
    team may not see.
    """
    current = list_baselines(dataset)
    if target is not None:
        current = usable_for(current, target, through="run__benchmark")
    elif user is not None:
        current = visible(current, user, through="run__benchmark")
    matching = find_rows(current, name_or_id)
    if matching:
        return matching[0]
    names = ", ".join(current.values_list("name", flat=True))
    hint = f"choose one of {names}" if names else "pin a completed run on its page"
    raise BenchbenchError(f"The dataset {dataset} has no current baseline {name_or_id!r}; {hint}.", field="baseline")
