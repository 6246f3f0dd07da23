"""Downloads of a dataset."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from apps.datasets.exporting import DatasetExport
from benchbench.errors import BenchbenchError
from benchbench.site.downloads import attachment


def download(request: HttpRequest, make: Callable[[], DatasetExport], *, back: str) -> HttpResponseBase:
    """Answer with what `make` returns, or go `back`, to a page that says why that cannot be.

    What the format has no place for is told on the page that is looked at next.
    """
    try:
        export = make()
        answer = attachment(export.write, export.name, export.writer.content_type)
    except BenchbenchError as error:
        messages.error(request, error.message)
        return redirect(back)
    for warning in export.warnings:
        messages.warning(request, f"{export.name}: {warning}")
    return answer
