"""Confusion matrices of two judges of a round, and the pairs behind each of their cells."""

from dataclasses import dataclass
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from apps.judging.judges import sees_others
from apps.judging.models import Grade, Round, RoundItem
from apps.judging.settling.agreeing import PairAgreement, agreement_of
from benchbench.site.admin import SiteAdmin

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Matrix:
    """A confusion matrix as shown: per grade of the first judge the counts, each with the address of its pairs."""

    pair: PairAgreement
    rows: list[tuple[int, list[tuple[int, str]]]]


def matrix_of(round: Round, pair: PairAgreement) -> Matrix:
    scale = [int(grade) for grade in pair.confusion.scale]
    url = reverse("admin:round_pairs", args=[round.pk])

    def cell(i: int, j: int) -> tuple[int, str]:
        asked: dict[str, str | int] = {"first": pair.first, "second": pair.second, "a": scale[i], "b": scale[j]}
        return len(pair.items[i][j]), f"{url}?{urlencode(asked)}"

    return Matrix(pair, [(grade, [cell(i, j) for j in range(len(scale))]) for i, grade in enumerate(scale)])


def pairs_page(request: HttpRequest, model_admin: SiteAdmin, object_id: UUID) -> HttpResponse:
    """The items that one judge gave one grade and another judge another: `?first=ada&second=grace&a=2&b=0`."""
    round: Round = model_admin.viewed(request, object_id)
    if not sees_others(round, request.user):
        raise PermissionDenied
    first, second, a, b = (request.GET.get(name, "") for name in ("first", "second", "a", "b"))
    pairs = [pair for pair in agreement_of(round).pairs if {pair.first, pair.second} == {first, second}]
    if (first and not pairs) or not all(len(grade) == 1 and grade.isdecimal() for grade in (a, b) if grade):
        raise Http404("There are no such judges, or grades, in this round.")
    rows = RoundItem.objects.filter(round=round).select_related("query", "document").order_by("place")
    for judge, grade in ((first, a), (second, b)):
        if judge and grade:
            given = Grade.objects.filter(judge_name=judge, grade=grade, adjudicates=False, source=Grade.Source.HUMAN)
            rows = rows.filter(pk__in=given.values("item"))
    items = list(rows[:SHOWN])
    said: dict[int, list[Grade]] = {item.pk: [] for item in items}
    for row in Grade.objects.filter(item__in=items, source=Grade.Source.HUMAN).order_by("adjudicates", "judge_name"):
        said[row.item_id].append(row)
    context = {
        "round": round,
        "rows": [(item, said[item.pk]) for item in items],
        "asked": f"{first} {a}, {second} {b}" if first and a and b else "",
        "count": rows.count(),
    }
    return model_admin.page(request, "judging/pairs.html", context, original=round)
