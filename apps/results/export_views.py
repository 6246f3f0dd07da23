"""Results as a file to keep."""

import tempfile
import uuid
from collections.abc import AsyncIterator
from typing import IO

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.http import content_disposition_header

from apps.benchmarks.models import Benchmark, Run
from apps.results.exporters import EXPORTERS
from apps.results.exporting import export, exporters_of, file_name, write_pieces
from benchbench.admin import SiteAdmin
from benchbench.errors import BenchbenchError
from benchbench.panels import change_url

IN_MEMORY = 2**20
AT_ONCE = 2**16


def download(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str) -> HttpResponseBase:
    """Answer with a benchmark or run in one of its formats, or go back to its page, which says why that cannot be.

    With `?version=2` the values are those on that version of its dataset.
    The file is made before the answer begins: one that breaks off half-way would look like a whole one.
    """
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    subject = model_admin.get_object(request, str(object_id))
    if not isinstance(subject, Benchmark | Run) or EXPORTERS.get(format) not in exporters_of(subject):
        raise Http404
    exporter, version = EXPORTERS[format], _version(request)
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 -- the response closes it
    try:
        write_pieces(export(subject, format, version=version), file)
    except BenchbenchError as error:
        file.close()
        messages.error(request, error.message)
        is_run = isinstance(subject, Run)
        return redirect(change_url(subject)) if is_run else redirect("admin:benchmark_results", subject.pk)
    file.seek(0)
    name = file_name(subject, exporter, version=version)
    return StreamingHttpResponse(
        _read(file),
        content_type=f"{exporter.content_type}; charset=utf-8",
        headers={"Content-Disposition": str(content_disposition_header(True, name))},
    )


def _version(request: HttpRequest) -> int | None:
    """The number of the dataset version whose values are asked for; None for the benchmark's own."""
    asked = request.GET.get("version", "")
    if asked and not (asked.isdecimal() and len(asked) < 10):
        raise Http404(f"There is no version {asked[:20]!r}.")
    return int(asked) if asked else None


async def _read(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The file in parts. Not by a plain iterator: an ASGI server would read that into memory before it answers."""
    with file:
        while part := await sync_to_async(file.read)(AT_ONCE):
            yield part
