"""Admin page of the disk space, below the operations."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from apps.collections.models import Collection
from apps.records.models import Benchmark
from apps.results.retention import sizes
from apps.results.retention.pruning import list_due
from apps.retrieval.models import Index
from benchbench.access import viewable
from benchbench.site.admin import SiteAdmin

MAX_ROWS = 15  # rows of each table
MAX_NAMES = 10  # rows of a policy


def disk_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the disk space by kind, collection, index and benchmark, and what retention would delete now."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    measured = sizes.load_sizes()

    estimates = (
        ("Collections", Collection, sizes.estimate_collections(measured)),
        ("Indexes", Index, sizes.estimate_indexes(measured)),
        ("Benchmarks", Benchmark, sizes.estimate_benchmarks(measured)),
    )
    context = {
        "title": "Disk",
        "sizes": measured,
        "files": sizes.measure_files(),
        "tables": [
            (title, list(columns), *sizes.list_largest(columns, viewable(model.objects.all(), request.user), MAX_ROWS))
            for title, model, columns in estimates
        ],
        "due": [
            (policy, viewable(rows, request.user)[:MAX_NAMES] if rows.model in (Benchmark, Index) else [], number, size)
            for policy, rows, number, size in list_due(measured)
        ],
    }
    return model_admin.render_page(request, "results/disk.html", context)
