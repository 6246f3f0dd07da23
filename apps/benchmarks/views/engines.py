"""Page of the declared engines, and of those that benchmarks name alone, below the operations."""

from collections import defaultdict
from collections.abc import Collection

from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse

from apps.engines.declarations import Declarations, load_declarations
from apps.engines.models import EngineAnswer
from apps.engines.review import list_samples, review_file
from apps.records.models import Benchmark
from benchbench.access import AnyUser, viewable
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.engine import EngineSetting
from benchbench.site.admin import SiteAdmin

LOOKED_AT = 1000  # benchmarks


def engines_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Render the declared engines with their parameters, and when each last answered; no secret and no template.

    Also the engines that benchmarks name and the site does not declare. Superusers see the place of the file, what is
    wrong in it, and samples; others see that it has an error.
    """
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    declarations, error = Declarations(), ""
    try:
        declarations = load_declarations()
    except BenchbenchError as problem:
        error = problem.message
    latest = dict(EngineAnswer.objects.values_list("engine").annotate(Max("asked_at")))
    rows = [(engine, latest.get(alias)) for alias, engine in declarations.engines.items()]
    context: dict[str, object] = {"title": "Engines", "rows": rows, "notices": declarations.notices.values()}
    context["refused"] = len(declarations.refused)
    if request.user.is_superuser:
        context |= {"review": review_file(), "samples": list_samples()}
    if not error:
        context["undeclared"] = list_undeclared(declarations.engines | declarations.refused_engines, request.user)
    return model_admin.render_page(request, "engines/engines.html", context | {"error": error})


def list_undeclared(declared: Collection[str], user: AnyUser) -> list[tuple[str, list[Benchmark]]]:
    """Return the undeclared engines of the newest benchmarks that `user` may see, each with these benchmarks."""
    benchmarks = viewable(Benchmark.objects.filter(matrix__has_key="engines"), user).order_by("-created_at")
    naming = defaultdict[str, list[Benchmark]](list)
    for benchmark in benchmarks.only("name", "matrix")[:LOOKED_AT]:
        settings = [setting for text in benchmark.matrix["engines"] if text for setting in EngineSetting.expand(text)]
        for alias in {setting.alias for setting in settings} - {*declared}:
            naming[alias].append(benchmark)
    return sorted(naming.items())
