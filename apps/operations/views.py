"""Pages about operations."""

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.operations.handlers import handler_for
from apps.operations.models import Operation
from apps.operations.progress import progress_of
from benchbench.site.admin import SiteAdmin


def progress(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Answer the bar of an operation; once that has ended, ask the page that shows it to load itself again."""
    operation: Operation = model_admin.viewed(request, object_id)
    if not operation.is_active:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "operations/progress.html", progress_context(operation))


def progress_context(operation: Operation) -> dict[str, object]:
    return {
        "operation": operation,
        "progress": progress_of(operation),
        "event": handler_for(operation).event(operation)[1],
    }
