"""The list of what a judge said in a round, and taking much of it back at once."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.judging.grading import grades_by, ungrade
from apps.judging.models import Grade
from apps.judging.views.judging import label_of, permitted
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.site.admin import SiteAdmin

SHOWN = 50
ALL = "all"


def my_grades(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """What the reader said in a round, the latest first; chosen grades are taken back, or all of a search."""
    round = permitted(request, model_admin, object_id)
    asked = request.GET.get("said", "")
    words = request.GET.get("q", "").strip()
    rows = grades_by(round, request.user).select_related("item__query", "item__document")
    if asked:
        rows = rows.filter(grade=asked) if asked.isdecimal() and len(asked) == 1 else rows.filter(kind=asked)
    if words:
        rows = rows.filter(item__query__text__icontains=words) | rows.filter(item__document__title__icontains=words)
    if request.method == "POST":
        chosen = request.POST.getlist("item")
        items = rows.values_list("item", flat=True)
        if ALL not in request.POST:
            items = items.filter(item__in=[pk for pk in chosen if pk.isdecimal() and len(pk) < 19])
        try:
            count = ungrade(round, request.user, list(items))
            messages.success(request, f"Taken back: {counted(count, 'grade')}. The items go to whoever comes next.")
        except BenchbenchError as error:
            messages.error(request, error.message)
        return redirect(request.get_full_path())
    page = Paginator(rows, SHOWN).get_page(request.GET.get("page"))
    kinds = [(Grade.Kind.SKIP, "skipped"), (Grade.Kind.CANT_TELL, "can't tell")]
    context = {
        "round": round,
        "page": page,
        "rows": [(row, label_of(round, row)) for row in page],
        "said": asked,
        "words": words,
        "choices": [*((str(entry["grade"]), f"{entry['grade']} {entry['name']}") for entry in round.scale), *kinds],
        "judge_url": reverse("admin:round_judge", args=[round.pk]),
    }
    return model_admin.page(request, "judging/grades.html", context, original=round)
