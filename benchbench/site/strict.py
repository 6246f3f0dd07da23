"""Basic checks of every request to an admin page: forms and query strings are untrusted."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import BadRequest, SuspiciousOperation, ValidationError
from django.db import DataError, ProgrammingError, transaction
from django.db.models import ForeignKey, Model, QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split
from unfold.admin import ModelAdmin

from benchbench.site.lengths import LimitedForm
from benchbench.site.merging import MergingForm

# Errors of a list whose query string compares a column with an unsuitable value.
UNANSWERABLE = (
    *(IncorrectLookupParameters, SuspiciousOperation, DataError, ProgrammingError),
    *(ValueError, TypeError, OverflowError),
)
SEARCH_WORDS = 10  # PostgreSQL compares each with every searched text of the table


Attributes = dict[str, object]  # of an element


class Lookup(AutocompleteSelect):
    """A field that searches the rows of a foreign key. A submitted text that cannot be a key is not looked up."""

    def build_attrs(self, base_attrs: Attributes, extra_attrs: Attributes | None = None) -> Attributes:
        sought = self.field.remote_field.model._meta.verbose_name_plural
        return {**super().build_attrs(base_attrs, extra_attrs), "data-placeholder": f"Search {sought}"}

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        key = self.field.target_field
        return super().optgroups(name, [one for one in value if not one or _is_readable(key, one)], attr)


def _is_readable(field: Any, value: str) -> bool:
    try:
        field.get_prep_value(value)
    except (ValidationError, ValueError, TypeError):
        return False
    return True


class MergingModelForm(MergingForm):
    """Mixin of a model's form that merges all of its fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.start_merging(cast(Any, self).instance, self.fields)


class StrictAdmin(ModelAdmin):
    """Admin class that refuses, with a message, requests that no page of ours makes."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list. Raises BadRequest for a query string by which its rows cannot be filtered or ordered."""
        try:
            listing = super().get_changelist_instance(request)
            len(listing.result_list)  # evaluated here, because only PostgreSQL can detect values that it cannot compare
        except UNANSWERABLE:
            if not request.GET:
                raise
            query, rows = request.META["QUERY_STRING"][:80], self.opts.verbose_name_plural
            message = f"The list of {rows} cannot be filtered by {query}. Open it without this filter."
            raise BadRequest(message) from None
        words = len(list(smart_split(listing.query)))
        if words > SEARCH_WORDS:
            sentence = (
                f"Searched for the first {SEARCH_WORDS} of {words:,} words. Quote a phrase to search for it whole."
            )
            self.message_user(request, sentence, messages.WARNING)
        return listing

    def changeform_view(self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any) -> Any:
        """Answer with the form of a row. The row is locked while a form is stored, so that forms merge one by one."""
        if request.method != "POST" or object_id is None:
            return super().changeform_view(request, object_id, *args, **kwargs)
        with transaction.atomic():
            with suppress(ValidationError, ValueError):  # an invalid id, which is not found
                rows = self.model._base_manager.select_for_update(of=("self",), no_key=True)
                rows.filter(pk=unquote(object_id)).values_list("pk").first()
            return super().changeform_view(request, object_id, *args, **kwargs)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form; that of an existing row merges what several users change at once."""
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (LimitedForm if obj is None else MergingModelForm, form), {"request": request})

    def formfield_for_foreignkey(self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", Lookup(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[Model], search_term: str) -> Any:
        """Search a list, or the choices of a field, for the first SEARCH_WORDS words; a quoted phrase counts as one."""
        return super().get_search_results(request, queryset, " ".join(list(smart_split(search_term))[:SEARCH_WORDS]))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return a row or None. If the address names an empty field, on which Django fails, look it up by its key."""
        return super().get_object(request, object_id, from_field or None)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Model]) -> Any:
        """Run an action on the selected rows. Raises BadRequest for an invalid id."""
        for id in request.POST.getlist("_selected_action"):
            try:
                self.opts.pk.to_python(id)
            except ValidationError:
                raise BadRequest(f"{id[:80]!r} is not a valid {self.opts.verbose_name} id.") from None
        return super().response_action(request, queryset)
