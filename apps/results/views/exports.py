"""Downloads of results."""

import uuid

from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from apps.benchmarks.models import Benchmark, Run
from apps.results.exporters import EXPORTERS
from apps.results.exporting import export, exporters_of, file_name
from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import write_pieces
from benchbench.site.admin import SiteAdmin
from benchbench.site.downloads import attachment
from benchbench.site.panels import change_url


def download(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str) -> HttpResponseBase:
    """Answer with a benchmark or run in one of its formats, or go back to its page, which says why that cannot be.

    With `?version=2` the values are those on that version of its dataset.
    The file is made before the answer begins: one that breaks off half-way would look like a whole one.
    """
    subject: Benchmark | Run = model_admin.viewed(request, object_id)
    if EXPORTERS.get(format) not in exporters_of(subject):
        raise Http404
    exporter, version = EXPORTERS[format], _version(request)
    try:
        return attachment(
            lambda file: write_pieces(export(subject, format, version=version), file),
            file_name(subject, exporter, version=version),
            exporter.content_type,
        )
    except BenchbenchError as error:
        messages.error(request, error.message)
        is_run = isinstance(subject, Run)
        return redirect(change_url(subject)) if is_run else redirect("admin:benchmark_results", subject.pk)


def _version(request: HttpRequest) -> int | None:
    """The number of the dataset version whose values are asked for; None for the benchmark's own."""
    asked = request.GET.get("version", "")
    if asked and not (asked.isdecimal() and len(asked) < 10):
        raise Http404(f"There is no version {asked[:20]!r}.")
    return int(asked) if asked else None
