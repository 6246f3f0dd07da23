"""Pages about operations."""

import uuid

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.operations.handlers import handler_for
from apps.operations.models import Operation
from apps.operations.monitoring import crew as monitored
from apps.operations.progress import progress_of
from benchbench.site.admin import SiteAdmin


def progress(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Answer the bar of an operation; once that has ended, ask the page that shows it to load itself again."""
    operation: Operation = model_admin.viewed(request, object_id)
    if not operation.is_active:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "operations/progress.html", progress_context(operation))


def workers(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Answer who works, on what, and what waits; of operations that the user may not see, that there is one."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    crew = monitored.crew()
    at_work = {worker.batch.operation_id for worker in crew if worker.batch}
    seen = model_admin.get_queryset(request).in_bulk(at_work)
    rows = [(worker, seen.get(worker.batch.operation_id) if worker.batch else None) for worker in crew]
    told = {"title": "Workers", "rows": rows, "queues": monitored.queues(crew)}
    return model_admin.page(request, "operations/workers.html", told)


def progress_context(operation: Operation) -> dict[str, object]:
    return {
        "operation": operation,
        "progress": progress_of(operation),
        "event": handler_for(operation).event(operation)[1],
    }
