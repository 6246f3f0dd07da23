"""Lists, a page at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer
from apps.api.fields import StrictSerializer, Whole

MOST_PAGES = 1_000_000


class PageQuery(StrictSerializer):
    """Which page; a list that can be narrowed adds its own keys in a subclass."""

    page = Whole(min_value=1, max_value=MOST_PAGES, default=1, help_text="From 1. A page after the last one is empty.")
    per_page = Whole(min_value=1, max_value=100, default=50)


class Page(serializers.Serializer):
    """A page of a list. A subclass adds the one field that holds the rows, under the name of what they are."""

    total = serializers.IntegerField(min_value=0, help_text="Rows on all pages together.")
    page = serializers.IntegerField(min_value=1)
    per_page = serializers.IntegerField(min_value=1)


def page_of(name: str, row: type) -> type[Page]:
    """Return the page whose rows are under `name`: of a serializer, or of a dataclass."""
    rows = Answer(dataclass=row, many=True) if is_dataclass(row) else row(many=True)
    return type(f"{row.__name__.removesuffix('Answer')}Page", (Page,), {name: rows, "__doc__": f"A page of {name}."})


def answer_page(
    page: type[Page],
    rows: QuerySet[Any] | Sequence[Any],
    query: Mapping[str, Any],
    *,
    tell: Callable[[Any], Sequence[Any]] = list,
    **about: Any,
) -> Response:
    """Answer with the page of `rows` that `query`, read by a `PageQuery`, asks for; `tell` makes of them what is told.

    `about` is told besides the rows: fields of `page` by their names.

    Two queries whatever the size, and those of the rows' prefetches. The order must be total, or pages would overlap.
    """
    (name,) = set(page().fields) - set(Page().fields) - set(about)
    start = (query["page"] - 1) * query["per_page"]
    total = rows.count() if isinstance(rows, QuerySet) else len(rows)
    shown = tell(rows[start : start + query["per_page"]]) if start < total else []
    told = {**about, name: shown, "total": total, "page": query["page"], "per_page": query["per_page"]}
    return Response(page(told).data)
