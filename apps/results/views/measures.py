"""Pages about measures: what they mean, and what their values rest on."""

import uuid
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from apps.benchmarks.measuring.reading import KeptError
from apps.benchmarks.measuring.slicing import slicing_of_version
from apps.benchmarks.models import Evaluation, Run
from apps.datasets.models import Dataset
from apps.results.leaderboard.coverage import CoverageError, coverage_of
from apps.results.triage import queries
from apps.results.triage.content import ContentError, content_of
from apps.results.triage.sections import section_means
from apps.results.views.results import version_asked
from benchbench.ir.measures import DEFINITIONS
from benchbench.ir.measures.library import catalogue
from benchbench.ir.slices import MINIMUM
from benchbench.site.admin import SiteAdmin

SHOWN_QUERIES = 25


def measures_page(request: HttpRequest, model_admin: SiteAdmin) -> HttpResponse:
    """Every measure that a benchmark can have, and what it means."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    context = {
        "title": "Measures",
        "ours": list(DEFINITIONS.values()),
        "theirs": [measure for measure in catalogue() if measure.name not in DEFINITIONS],
    }
    return model_admin.page(request, "results/measures.html", context)


def dataset_shape(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The part of a dataset's page that says how its queries are judged, and of what kinds they are."""
    dataset: Dataset = model_admin.viewed(request, object_id)
    version = dataset.versions.filter(frozen_at__isnull=False).order_by("-number").first()
    context: dict[str, Any] = {"version": version, "minimum": MINIMUM}
    if version is not None:
        slicing, context["shape"] = slicing_of_version(version)
        context["slices"] = slicing.slices
    return render(request, "results/shape.html", context)


def run_coverage(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The part of a run's page that says how far its means rest on judgments."""
    evaluation = _measured(request, model_admin, object_id)
    return _part(request, "coverage", lambda: {"evaluation": evaluation, "rows": coverage_of(evaluation)})


def run_sections(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The part of a run's page that says how well it finds the sections that judgments name."""
    evaluation = _measured(request, model_admin, object_id)
    return _part(request, "sections", lambda: {"means": section_means(evaluation)})


def run_content(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """The part of a run's page that says what its texts hold of evidence and expected answers."""
    evaluation = _measured(request, model_admin, object_id)

    def context() -> dict[str, Any]:
        content = content_of(evaluation)
        shown = content.queries[:SHOWN_QUERIES]
        rows = queries.query_rows(evaluation.run, None, [query.query_id for query in shown], [])
        return {"content": content, "rows": [(row, values.values) for row, values in zip(rows, shown, strict=True)]}

    return _part(request, "content", context)


def _part(request: HttpRequest, name: str, context_of: Callable[[], dict[str, Any]]) -> HttpResponse:
    """Render a part of a page with what was found, or with the sentence that says why nothing can be."""
    try:
        context = context_of()
    except (ContentError, CoverageError, KeptError) as error:
        context = {"error": error.message}
    return render(request, f"results/{name}.html", context)


def _measured(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> Evaluation:
    run: Run = model_admin.viewed(request, object_id)
    evaluation = queries.evaluation_of(run, version=version_asked(request, run.benchmark).version)
    if evaluation is None:
        raise Http404(f"{run} has not been measured.")
    return evaluation
