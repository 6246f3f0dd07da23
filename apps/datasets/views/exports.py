"""The page that exports a dataset version."""

import uuid

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from apps.datasets.downloading import download
from apps.datasets.exporting import export_record, record_of
from apps.datasets.models import DatasetVersion
from apps.datasets.writers import WRITERS
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import change_url


def download_version(
    request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str
) -> HttpResponseBase:
    """Answer with a version in one of the formats, or go back to its page, which says why that cannot be."""
    version: DatasetVersion = model_admin.viewed(request, object_id)
    if format not in WRITERS:
        raise Http404
    name = f"{version.dataset.name}-v{version.number}"
    return download(request, lambda: export_record(record_of(version), format, name=name), back=change_url(version))
