"""Filters of the lists of datasets, queries and judgments."""

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest

from apps.datasets.formats.registry import FORMATS
from apps.datasets.models import Judgment, Query
from benchbench.reading.ids import parse_uuid

SAMPLED = 10_000  # queries of a dataset in which the choices of a filter occur


def name_format(key: str) -> str:
    """Return the name of a format of uploads; a key that is no longer known names itself."""
    return FORMATS[key].label if key in FORMATS else key


class FormatFilter(SimpleListFilter):
    """Filter of datasets by the formats that they were uploaded in."""

    title = "format"
    parameter_name = "source_format"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by()
        keys = {self.value() or "", *rows.values_list("source_format", flat=True).distinct()} - {""}
        return [(key, name_format(key)) for key in sorted(keys)]  # also of no row: without a choice nothing is filtered

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        return queryset.filter(source_format=self.value()) if self.value() else queryset


class NewestFilter(SimpleListFilter):
    """Filter for the current queries or judgments, drafts included, or those of every version."""

    title = "version"
    parameter_name = "of"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("all", "Every version")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        newest, *older = super().choices(changelist)
        yield {**newest, "display": "Newest"}
        yield from older

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        current = {"until": None} if queryset.model is Query else {"until": None, "query__until": None}
        return queryset if self.value() == "all" else queryset.filter(**current)


class RelevantFilter(SimpleListFilter):
    """Filter of queries by whether a current judgment says that a document is relevant."""

    title = "relevant documents"
    parameter_name = "relevant"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("some", "one or more"), ("none", "none at all")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        relevant = Exists(Judgment.objects.filter(query=OuterRef("pk"), until=None, grade__gt=0))
        conditions = {"some": relevant, "none": ~relevant}
        return queryset.filter(conditions[value]) if (value := self.value()) in conditions else queryset


class GradeFilter(SimpleListFilter):
    """Filter of judgments by whether they say that the document is relevant."""

    title = "grade"
    parameter_name = "graded"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("relevant", "Above 0, relevant"), ("not", "0, not relevant")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        conditions = {"relevant": {"grade__gt": 0}, "not": {"grade__lte": 0}}
        return queryset.filter(**conditions.get(self.value() or "", {}))


class _KindFilter(SimpleListFilter):
    """Filter of the queries of a chosen dataset by a text of theirs; without a dataset it has no choices."""

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        chosen = [value] if (value := self.value()) else []
        try:
            dataset = parse_uuid(request.GET.get("dataset__id__exact", ""))
        except ValueError:
            return [(text, text) for text in chosen]
        some = Query.objects.filter(dataset=dataset, until=None).order_by("pk")[:SAMPLED]
        names = Query.objects.filter(pk__in=some.values("pk")).order_by().values_list(str(self.parameter_name))
        return [(text, text) for text in sorted({*chosen, *(name for (name,) in names.distinct())} - {""})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


KIND_FILTERS = tuple(
    type(f"{name.capitalize()}Filter", (_KindFilter,), {"title": name, "parameter_name": name})
    for name in ("category", "difficulty", "split")
)
