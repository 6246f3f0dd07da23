"""Page of a new evaluation until its benchmark starts: the steps, and how far each is."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib.messages import get_messages
from django.contrib.messages.storage.base import BaseStorage
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from apps.execution.defining.questions import QUESTIONS
from apps.execution.preparing import load_indexes
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.progress import Progress, compute_each_progress
from apps.operations.queueing import count_each_ahead
from apps.operations.waiting import describe_wait
from apps.records.models import Preparation
from apps.retrieval.models import Index
from benchbench.decimals import counted
from benchbench.site.admin import SiteAdmin


def evaluation_progress(request: HttpRequest, model_admin: SiteAdmin, preparation_id: uuid.UUID) -> HttpResponse:
    """Show the steps until the benchmark starts, then lead to it."""
    rows = Preparation.objects.select_related("started_by", "benchmark", "mapping__dataset", "mapping__collection")
    preparation = get_object_or_404(rows.select_related("mapping__dataset_version"), pk=preparation_id)
    if request.user != preparation.started_by and not request.user.is_superuser:  # it names rows of theirs
        raise PermissionDenied("Only the user who started this evaluation, and superusers, may follow it.")
    if preparation.benchmark:
        results = reverse("admin:benchmark_results", args=[preparation.benchmark.pk])
        return HttpResponse(headers={"HX-Redirect": results}) if "HX-Request" in request.headers else redirect(results)
    mapping, error, indexes = preparation.mapping, preparation.error, load_indexes(preparation)
    if len(indexes) < len(preparation.index_ids):
        error = "An index was deleted."
    question = QUESTIONS[preparation.question]
    work = list(_yield_steps([mapping, *indexes], error))
    states = [step.state for step in work]
    version = mapping.dataset_version
    steps = [
        Step("Documents", "done", mapping.collection, counted(mapping.collection.document_count, "document")),
        Step("Queries", "done", mapping.dataset, counted(version.query_count if version else 0, "query")),
        *work,
        Step("Benchmark", "failed" if error else "waiting", result=question.title, error=error),
    ]
    again = {"collection": mapping.collection_id, "dataset": mapping.dataset_id, "question": question.key}
    again["encoder"] = indexes[0].encoder if indexes else ""
    again |= indexes[0].encoder_parameters.list_changes() if indexes else {}
    context = {
        "title": "New evaluation",
        "mapping": mapping,
        "steps": steps,
        "is_failed": "failed" in states or error,
        "is_running": not {"queued", "running"}.isdisjoint(states),
        "retry_url": f"{reverse('admin:new_evaluation')}?{urlencode(again, safe='', quote_via=quote)}",
    }
    response = model_admin.render_page(request, "benchmarks/evaluation.html", context)
    response.add_post_render_callback(lambda _: _keep_messages(request))
    return response


def _keep_messages(request: HttpRequest) -> None:
    """Show what was read of the files on the benchmark's page again: this page may lead to it within a second."""
    messages = get_messages(request)
    if isinstance(messages, BaseStorage):
        messages.used = False


@dataclass(frozen=True)
class Step:
    """A step of a new evaluation on its page. The state is "done", "queued", "running", "failed" or "waiting"."""

    title: str
    state: str
    row: Model | None = None
    result: str = ""
    progress: Progress | None = None
    waiting_for: str | None = None
    position: int | None = None
    error: str = ""


def _yield_steps(rows: list[Any], error: str) -> Iterator[Step]:
    """Yield the steps of a mapping and its indexes. `error` is that of a failed step without its own."""
    operations = Operation.objects.filter(subject_id__in=[row.pk for row in rows]).order_by("created_at")
    newest = {operation.subject_id: operation for operation in operations}
    active = [operation for operation in newest.values() if operation.is_active]
    progress, ahead = compute_each_progress(active), count_each_ahead(active)
    for row in rows:
        operation = newest.get(row.pk)
        step = Step("Mapping" if isinstance(row, Mapping) else "Index", "failed", row=row)
        if operation and operation.is_active:
            yield replace(
                step,
                state=operation.status_word,
                progress=progress[operation],
                waiting_for=describe_wait(operation),
                position=ahead[operation],
            )
        elif row.status in (Index.Status.READY, Mapping.Status.RESOLVED, Mapping.Status.PARTIAL):
            yield replace(step, state="done", result=_describe_mapped(row) if isinstance(row, Mapping) else "")
        else:
            yield replace(step, error=operation.error if operation and operation.error else error)


def _describe_mapped(mapping: Mapping) -> str:
    return f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments have a document"
