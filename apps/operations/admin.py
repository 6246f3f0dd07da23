"""Admin pages of operations."""

import uuid
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html
from unfold.decorators import display

from apps.operations import queueing
from apps.operations.launching import cancel_operation
from apps.operations.models import Batch, Operation, with_subjects
from apps.operations.progress import compute_each_progress, compute_progress
from apps.operations.queueing import list_queues, list_workers
from apps.operations.waiting import describe_wait
from benchbench.durations import format_duration
from benchbench.site.admin import FactAdmin, LargeAdmin, SiteAdmin
from benchbench.site.lists import VisibleFilter
from benchbench.site.panels import Button, Page, Panel, build_list_url, change_url, may_open


def progress(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Render the progress bar of an operation. Once it has ended, make HTMX reload the page."""
    operation: Operation = model_admin.load_viewed(request, object_id)
    if not operation.is_active:
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {
        "operation": operation,
        "progress": compute_progress(operation),
        "position": queueing.count_ahead(operation),
        "waiting_for": describe_wait(operation),
    }
    return render(request, "operations/progress.html", context)


def workers_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the workers with their operations, and the queues. Operations hidden from the user appear unnamed."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    workers = list_workers()
    operation_ids = {worker.batch.operation_id for worker in workers if worker.batch}
    operations = model_admin.get_queryset(request).in_bulk(operation_ids)
    progress = compute_each_progress([*operations.values()])
    at_work = [operations.get(worker.batch.operation_id) if worker.batch else None for worker in workers]
    rows = [
        (worker, operation, progress[operation] if operation and operation.is_active else None)
        for worker, operation in zip(workers, at_work, strict=True)
    ]
    context = {"title": "Workers", "rows": rows, "queues": list_queues(workers)}
    return model_admin.render_page(request, "operations/workers.html", context)


@admin.register(Operation)
class OperationAdmin(FactAdmin):
    list_display = (
        "title",
        "status_label",
        "priority",
        "owner",
        "started_by",
        "created_at",
        "finished_at",
    )
    phone_columns = ("status_label", "created_at")
    list_filter = ("kind", "status", "queue", "priority")
    list_select_related = ("started_by",)
    search_fields = ("=id", "=subject_id", "error")
    search_help_text = "Id of the operation or its object, or words of its error"
    actions = ("cancel_selected",)
    pages = (
        Page("<uuid:object_id>/progress/", progress, "operation_progress"),
        Page("workers/", workers_page, "workers"),
    )
    fieldsets = (
        (None, {"fields": ("subject", "error")}),
        (
            "Facts",
            {
                "fields": (
                    ("created_at", "started_by"),
                    ("started_at", "finished_at"),
                    ("owner", "queue"),
                    ("priority", "planned_time"),
                    "unit_count",
                )
            },
        ),
        ("Details", {"classes": ("collapse",), "fields": ("parameters",)}),
    )

    @display(description="units of work")
    def unit_count(self, operation: Operation) -> str:
        return f"{operation.total_units:,}"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Operation]:
        return with_subjects(super().get_queryset(request))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Model:
        operation = super().get_object(request, object_id, from_field)
        assert isinstance(operation, Operation)
        vars(operation)["opens_subject"] = operation.subject is not None and may_open(request, operation.subject)
        return operation

    @admin.action(description="Cancel", permissions=["act"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def cancel(operation: Operation) -> str:
            cancel_operation(operation)
            return f"Cancelled “{operation}”. What it has stored stays."

        return self.apply_each(request, queryset, cancel)

    @display(description="works on")
    def subject(self, operation: Operation) -> str:
        subject = operation.subject
        if subject is None:
            return str(operation.subject_id)
        noun = subject._meta.verbose_name
        if not getattr(operation, "opens_subject", True):
            return f"{noun} {subject}"
        return format_html('{} <a class="text-link" href="{}">{}</a>', noun, change_url(subject), subject)

    @display(description="operation", ordering="subject_name")
    def title(self, operation: Operation) -> str:
        return str(operation)

    @display(description="planned time")
    def planned_time(self, operation: Operation) -> str:
        return "–" if operation.planned_seconds is None else format_duration(operation.planned_seconds)

    @display(description="owner", ordering="owner_name", empty_value="–")
    def owner(self, operation: Any) -> str | None:
        return operation.owner_name

    def list_concerned(self, row: Operation) -> list[Any]:
        return [instance for instance in (row, row.subject) if instance is not None]

    def find_operation(self, obj: Operation) -> Operation | None:
        return obj if obj.is_active else None

    def list_buttons(self, request: HttpRequest, obj: Operation) -> list[Button]:
        return [Button("Cancel", "stop_circle", "cancel_selected")] if obj.is_active else []

    def list_panels(self, request: HttpRequest, obj: Operation) -> list[Panel]:
        every = build_list_url(Batch, operation__id__exact=obj.pk)
        columns = ("ordinal", "state_label", "attempts", "units", "finished_at")
        return [Panel("Batches", Batch.objects.filter(operation=obj).order_by("ordinal"), columns, every=every)]


@admin.register(Batch)
class BatchAdmin(LargeAdmin):
    through = "operation"
    list_display = ("ordinal", "state_label", "operation", "attempts", "unit_count", "started_at", "finished_at")
    list_select_related = ()  # joined, an operation would come without the name of its subject
    list_filter = ("state", ("operation", VisibleFilter))
    ordering = ("operation_id", "ordinal")
    fieldsets = (
        (None, {"fields": (("state", "attempts"), ("started_at", "finished_at"), ("units", "done_units"), "error")}),
        ("Lease", {"fields": (("lease_owner", "lease_until"), "backup_owner")}),
        ("Details", {"classes": ("collapse",), "fields": ("payload", "result")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Batch]:
        return (
            super()
            .get_queryset(request)
            .prefetch_related(Prefetch("operation", with_subjects(Operation.objects.all())))
        )

    @display(description="units", ordering="units")
    def unit_count(self, batch: Batch) -> str:
        return f"{batch.units:,}"

    @display(
        description="state",
        ordering="state",
        label={"done": "success", "running": "info", "failed": "danger", "pending": "default"},
    )
    def state_label(self, batch: Batch) -> str:
        return batch.state

    def list_trail(self, obj: Batch) -> list[Any]:
        return [obj.operation]
