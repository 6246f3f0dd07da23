"""The page that exports a dataset with the documents of a mapping."""

import uuid

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase

from apps.datasets.downloading import download
from apps.datasets.writers import WRITERS
from apps.mappings.exporting import export_dataset
from apps.mappings.models import Mapping
from benchbench.access import may_view
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import change_url


def download_mapped(
    request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID, format: str
) -> HttpResponseBase:
    """Answer with the version that a mapping is resolved for in one of the formats, BEIR with the corpus; or go back
    to its page, which says why that cannot be."""
    mapping: Mapping = model_admin.viewed(request, object_id)
    if mapping.dataset_version is None or format not in WRITERS:
        raise Http404
    if not may_view(mapping.collection, request.user):  # whose documents the files would tell
        raise PermissionDenied
    version = mapping.dataset_version
    return download(request, lambda: export_dataset(version, format, mapping=mapping), back=change_url(mapping))
