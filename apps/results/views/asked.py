"""Parameters of the addresses of pages of results; a value that there is not is not found, and it is said what is."""

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest

from apps.benchmarks.models import Benchmark, Run
from apps.results.leaderboard.versions import NoValuesError, VersionShown, version_shown
from benchbench.access import visible

MOST_SHOWN = 20  # characters


def version_asked(request: HttpRequest, benchmark: Benchmark) -> VersionShown:
    """Return the version of the values that `?version=` names; the benchmark's own where it names none."""
    try:
        return version_shown(benchmark, request.GET.get("version", ""))
    except NoValuesError as error:
        raise Http404(error.message) from None


def cutoff_asked(request: HttpRequest, benchmark: Benchmark) -> int:
    """Return the cutoff that `?k=` names; the benchmark's primary one where it names none."""
    asked = request.GET.get("k", "")
    there = {str(k): k for k in benchmark.k_values}
    if asked and asked not in there:
        raise Http404(f'"{benchmark}" has no values at k = {asked[:MOST_SHOWN]}; there are k = {", ".join(there)}.')
    return there[asked] if asked else benchmark.primary_k


def run_against(request: HttpRequest) -> Run | None:
    """Return the run that `?against=` names. One that is not there, or not for this user to see, is not found."""
    asked = request.GET.get("against", "")
    if not asked:
        return None
    try:
        return visible(Run.objects.select_related("benchmark"), request.user, through="benchmark").get(pk=asked)
    except (Run.DoesNotExist, ValidationError):
        raise Http404(f"There is no run {asked} that you may see.") from None
