"""The figure of a round's course: how sure its verdict was after each number of grades, and how far it still is."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.judging.judges import sees_others
from apps.judging.models import Round
from apps.judging.settling.course import Course, course_of
from benchbench.site.admin import SiteAdmin

VERDICT, PAIRS, FORECAST = "#2f6fde", "#2a9d6f", "#e07b39"
SURE = 0.95


def course_fragment(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """What was settled after how many grades, as a figure. Judges of a blind, open round do not see it."""
    round: Round = model_admin.viewed(request, object_id)
    if not sees_others(round, request.user):
        raise PermissionDenied
    course = course_of(round)
    told = course is not None and any(point.probability is not None for point in course.points)
    context = {"round": round, "course": course, "figure": course_figure(course) if course and told else None}
    return render(request, "judging/course.html", context)


def course_figure(course: Course) -> dict[str, Any]:
    """Return the figure: over the number of grades, the probability of the likeliest verdict and the settled pairs.

    A band shows where the forecast has the end: after so many grades more half of the time, and nine of ten.
    """
    last = course.points[-1]
    layout = {
        "xaxis": {"title": {"text": "items with a grade"}, "rangemode": "tozero"},
        "yaxis": {"range": [0, 1.03], "tickformat": ".0%"},
        "shapes": [_line(SURE), *_end(last.grades, course)],
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "margin": {"l": 56, "r": 16, "t": 40, "b": 48},
        "height": 320,
        "hovermode": "x unified",
    }
    traces = [
        _trace(course, "probability", "likeliest verdict", VERDICT),
        _trace(course, "settled", "pairs of runs settled", PAIRS),
    ]
    return {"data": traces, "layout": layout}


def _trace(course: Course, field: str, name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [point.grades for point in course.points],
        "y": [getattr(point, field) for point in course.points],
        "line": {"color": colour},
        "hovertemplate": "%{y:.0%}",
    }


def _line(share: float) -> dict[str, Any]:
    dotted = {"color": VERDICT, "dash": "dot", "width": 1}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": share, "y1": share, "line": dotted}


def _end(grades: int, course: Course) -> list[dict[str, Any]]:
    """Return the band of the forecast, which keeps it in view; nothing where there is none or nothing is to come."""
    middle, most = course.more.middle, course.more.most
    if not middle:
        return []
    ends = {"x0": grades + middle, "x1": grades + (most or middle), "yref": "paper", "y0": 0, "y1": 1}
    return [{"type": "rect", **ends, "fillcolor": FORECAST, "opacity": 0.18, "line": {"color": FORECAST, "width": 1}}]
