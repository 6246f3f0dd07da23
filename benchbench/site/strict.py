"""The least that every admin page asks of a request: anybody may have written the form or the query string."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, SuspiciousOperation, ValidationError
from django.db import DataError, ProgrammingError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split
from unfold.admin import ModelAdmin

# What a list raises where a query string compares a column with what it cannot be compared with.
UNANSWERABLE = (
    *(IncorrectLookupParameters, SuspiciousOperation, DataError, ProgrammingError),
    *(ValueError, TypeError, OverflowError),
)
SEARCH_WORDS = 10  # PostgreSQL compares each with every searched text of the table


class StrictAdmin(ModelAdmin):
    """Refuses, in a sentence, what no page of ours asks for."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list. Raises BadRequest for a query string that its rows cannot be filtered or ordered by."""
        try:
            shown = super().get_changelist_instance(request)
            len(shown.result_list)  # read here, once for all, since only PostgreSQL knows what it cannot compare
        except UNANSWERABLE:
            if not request.GET:
                raise
            asked, rows = request.META["QUERY_STRING"][:80], self.opts.verbose_name_plural
            message = f"The list of {rows} cannot be filtered as the address asks, with {asked}: open it without."
            raise BadRequest(message) from None
        words = len(list(smart_split(shown.query)))
        if words > SEARCH_WORDS:
            sentence = (
                f"Searched for the first {SEARCH_WORDS} of {words:,} words. Quote a phrase to search for it whole."
            )
            self.message_user(request, sentence, messages.WARNING)
        return shown

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Any], search_term: str) -> Any:
        """Search a list, or the choices of a field, for the first words alone; a quoted phrase is one of them."""
        return super().get_search_results(request, queryset, " ".join(list(smart_split(search_term))[:SEARCH_WORDS]))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return a row or None; by its key where the address names an empty field, with which Django fails."""
        return super().get_object(request, object_id, from_field or None)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Do an action to the rows that were ticked. Raises BadRequest for an id that no row could have."""
        for id in request.POST.getlist("_selected_action"):
            try:
                self.opts.pk.to_python(id)
            except ValidationError:
                raise BadRequest(f"{id[:80]!r} is the id of no {self.opts.verbose_name}.") from None
        return super().response_action(request, queryset)
