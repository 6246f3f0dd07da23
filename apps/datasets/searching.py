"""Search of long lists by what judgments have: words of the query, and values of the reference."""

from functools import reduce
from operator import or_
from typing import ClassVar

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split, unescape_string_literal

from apps.datasets.models import Judgment, Query
from benchbench.site.admin import LargeAdmin
from benchbench.site.strict import SEARCH_WORDS

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
    words = list(smart_split(text))[:SEARCH_WORDS]
    if not words:
        return None
    rows = Judgment.objects.order_by()
    for word in words:
        if word[0] in "\"'" and word[0] == word[-1]:
            word = unescape_string_literal(word)
        queries = Query.objects.filter(Q(key__iexact=word) | Q(text__icontains=word)).order_by()
        keys = list(queries.values_list("pk", flat=True)[: MOST_QUERIES + 1])
        of_query = Q(query__in=keys)
        if len(keys) > MOST_QUERIES:
            of_query = Q(query__key__iexact=word) | Q(query__text__icontains=word)
        rows = rows.filter(reduce(or_, (Q(**{f"doc_ref__{key}__icontains": word}) for key in REFERENCE_KEYS), of_query))
    matches = list(rows.values_list("pk", flat=True)[: FEW + 1])
    return matches if len(matches) <= FEW else None


class JudgmentSearchAdmin(LargeAdmin):
    """Admin class of a large list that is searched by what judgments have; `judgment` leads to them."""

    judgment: ClassVar[str] = "pk"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Model], search_term: str
    ) -> tuple[QuerySet[Model], bool]:
        is_long = search_term.strip() and queryset.order_by().values("pk")[: FEW + 1].count() > FEW
        keys = find_judgments(search_term) if is_long else None
        if keys is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(**{f"{self.judgment}__in": keys}), False
