"""Pages that freeze a dataset's draft, bring its mappings and benchmarks to a version, and show what moved."""

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.versions import find_version
from apps.datasets.views.datasets import freeze_draft
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.records.models import Benchmark
from apps.results.leaderboard.versions import load_moves
from apps.results.triage.next_steps import list_next_steps
from apps.results.triage.updating import find_outdated, update_values
from benchbench.access import describe_lack, staff, visible
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin


def freeze_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Show the draft's changes, and freeze it; then resolve the mappings and re-score the benchmarks."""

    def foresee(draft: DatasetVersion) -> str:
        outdated = find_outdated(draft.dataset, request.user, draft.number)
        mappings, benchmarks = outdated.mappings.count(), outdated.benchmarks.count()
        if not mappings:
            return ""
        return (
            f"Then {counted(mappings, 'mapping')} will be resolved for it, and {counted(benchmarks, 'benchmark')} "
            "re-scored from stored rankings."
        )

    return freeze_draft(request, model_admin, object_id, finish=lambda version: _update(request, version), then=foresee)


def moved_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """Show the values that moved with `?version=`, by default the newest; on POST bring the values to the newest."""
    dataset: Dataset = model_admin.load_viewed(request, object_id)
    if request.method == "POST":
        if not any(request.user.has_perm(name) for name in ("mappings.change_mapping", "benchmarks.change_benchmark")):
            raise PermissionDenied(describe_lack("mappings.change_mapping"))
        return _update(request, find_version(dataset))
    number = request.GET.get("version", "")
    try:
        version = find_version(dataset, int(number) if number.isdecimal() and len(number) < 10 else None)
    except BenchbenchError as error:
        raise Http404(error.message) from None
    moves, further = load_moves(version, request.user)
    working = Operation.objects.filter(
        Q(subject_id__in=Mapping.objects.filter(dataset=dataset).values("pk"))
        | Q(subject_id__in=Benchmark.objects.filter(mapping__dataset=dataset).values("pk")),
        kind__in=(Operation.Kind.RESOLVE, Operation.Kind.MEASURE),
        status__in=Status.active(),
    )
    context: dict[str, object] = {
        "version": version,
        "trail": [dataset],
        "moves": moves,
        "further": further,
        "operations": visible(working, request.user),
        "steps": list_next_steps(dataset, request.user, None),
    }
    return model_admin.render_page(request, "results/moves.html", context, original=dataset)


def _update(request: HttpRequest, version: DatasetVersion) -> HttpResponse:
    update = update_values(version, by=staff(request))
    for sentence in update.steps:
        messages.success(request, sentence)
    for sentence in update.failures:
        messages.error(request, sentence)
    if not update.steps and not update.failures:
        messages.info(request, f"Every mapping and benchmark that you may see has values on {version}.")
    return redirect(f"{reverse('admin:dataset_moved', args=[version.dataset_id])}?version={version.number}")
