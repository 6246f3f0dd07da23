"""Pages of a query and of a document, with their values and ranks in the runs of one benchmark."""

from typing import TypeVar

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.collections.models import Document
from apps.datasets.models import Query
from apps.results.leaderboard.versions import NoValuesError
from apps.results.triage.document_page import build_document_page, list_indexes, list_searching
from apps.results.triage.query_page import build_query_page, list_searched
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import note_seen

SHOWN_CHOICES = 30
M = TypeVar("M", bound=Model)


def choose(request: HttpRequest, name: str, rows: QuerySet[M]) -> tuple[M | None, list[M]]:
    """Return the row that the parameter `name` gives, by default the first, and the first rows to choose from.

    Raises Http404 if `rows` lack it.
    """
    choices, key = list(rows[:SHOWN_CHOICES]), request.GET.get(name, "")
    if not key:
        return next(iter(choices), None), choices
    try:
        chosen = next((row for row in choices if str(row.pk) == key), None) or rows.get(pk=key)
    except (ObjectDoesNotExist, ValidationError):
        raise Http404(f"The {name} {key[:40]} was not found, or it does not fit this page.") from None
    return chosen, choices if chosen in choices else [chosen, *choices]


@require_safe
def query_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """Render a query: its text and judged documents, and in the runs of a benchmark its values and their ranks."""
    query: Query = model_admin.load_viewed(request, object_id)
    benchmark, benchmarks = choose(request, "benchmark", list_searched(query, request.user))
    version, by = request.GET.get("version", ""), request.GET.get("by", "")
    try:
        words = request.GET.get("q", "").strip()
        context = build_query_page(query, request.user, benchmark, number=version, by=by, words=words)
    except NoValuesError as error:
        raise Http404(error.message) from None
    context["benchmarks"] = benchmarks
    if benchmark:
        note_seen(request, benchmark)
    return _render(request, model_admin, "query_page", context, query)


@require_safe
def document_page(request: HttpRequest, model_admin: SiteAdmin, object_id: str) -> HttpResponse:
    """Render a document: its text and chunks, the queries that judge it, and its ranks in the runs of a benchmark."""
    document: Document = model_admin.load_viewed(request, object_id)
    index, indexes = choose(request, "index", list_indexes(document, request.user))
    benchmark, benchmarks = choose(request, "benchmark", list_searching(document, request.user))
    context = build_document_page(document, request.user, request.GET.dict(), index=index, benchmark=benchmark)
    context |= {"benchmarks": benchmarks, "indexes": indexes}
    for row in filter(None, (benchmark, index)):
        note_seen(request, row)
    return _render(request, model_admin, "document_page", context, document)


def _render(
    request: HttpRequest, model_admin: SiteAdmin, template: str, context: dict[str, object], original: object
) -> HttpResponse:
    context["buttons"] = model_admin.list_offered(request, original)
    return model_admin.render_page(request, f"results/{template}.html", context, original=original)
