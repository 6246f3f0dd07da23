"""Filters of the lists of datasets, queries and judgments."""

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split, unescape_string_literal

from apps.datasets.formats.registry import FORMATS
from apps.datasets.models import Judgment, Query
from benchbench.reading.ids import parse_uuid
from benchbench.site.admin import LargeAdmin
from benchbench.site.strict import SEARCH_WORDS

SAMPLED = 10_000  # queries of a dataset in which the choices of a filter occur
SEARCH_HELP = "Words of the query, its key, or the document's id, address or file name"
REFERENCE_KEYS = ("document_id", "uri", "path", "file_name", "content_hash")
FEW = 10_000  # rows that are looked up one by one
MOST_QUERIES = 1000  # with a word, whose keys are compared instead of their texts


def list_searched(judgment: str = "") -> tuple[str, ...]:
    """Return what a search of judgments reads, with the prefix `judgment`: the query, and values of the reference."""
    references = [f"{judgment}doc_ref__{key}" for key in REFERENCE_KEYS]
    return (f"={judgment}query__key", f"{judgment}query__text", *references)


def find_judgments(text: str) -> list[int] | None:
    """Return the keys of the judgments with every word of a search; None for more than FEW, or without words.

    This reads the table once, in its own order and by several processes. In the order of a list PostgreSQL looks up the
    judgment and the query of row after row until a page is full, which it never is for rare words.
    """
    rows = Judgment.objects.order_by()
    words = list(smart_split(text))[:SEARCH_WORDS]
    for word in words:
        if word[0] in "\"'" and word[0] == word[-1]:
            word = unescape_string_literal(word)
        queries = Query.objects.filter(Q(key__iexact=word) | Q(text__icontains=word)).order_by()
        keys = list(queries.values_list("pk", flat=True)[: MOST_QUERIES + 1])
        of_query = Q(query__in=keys)
        if len(keys) > MOST_QUERIES:
            of_query = Q(query__key__iexact=word) | Q(query__text__icontains=word)
        rows = rows.filter(reduce(or_, (Q(**{f"doc_ref__{key}__icontains": word}) for key in REFERENCE_KEYS), of_query))
    matches = list(rows.values_list("pk", flat=True)[: FEW + 1]) if words else []
    return matches if words and len(matches) <= FEW else None


class JudgmentSearchAdmin(LargeAdmin):
    """Admin class of a large list that is searched by what judgments have; `judgment` leads to them."""

    judgment: ClassVar[str] = "pk"

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Model], search_term: str) -> Any:
        is_long = search_term.strip() and queryset.order_by().values("pk")[: FEW + 1].count() > FEW
        keys = find_judgments(search_term) if is_long else None
        if keys is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(**{f"{self.judgment}__in": keys}), False


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
