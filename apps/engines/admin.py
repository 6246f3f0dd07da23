"""Admin page of the declared engines, below the operations."""

from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse

from apps.engines.declarations import Declarations, load_declarations
from apps.engines.models import EngineAnswer
from apps.operations.models import Operation
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin
from benchbench.site.panels import Page, add_to


def engines_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the declared engines with their parameters, and when each last answered; no secret and no template."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    declarations, error = Declarations(), ""
    try:
        declarations = load_declarations()
    except BenchbenchError as problem:
        error = problem.message
    latest = dict(EngineAnswer.objects.values_list("engine").annotate(Max("asked_at")))
    rows = [(engine, latest.get(alias)) for alias, engine in declarations.engines.items()]
    context = {"title": "Engines", "rows": rows, "notices": declarations.notices.values()}
    return model_admin.render_page(request, "engines/engines.html", context | {"error": error})


add_to(Operation, pages=(Page("engines/", engines_page, "engines"),))
