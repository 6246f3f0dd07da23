"""Lists of the admin: columns of higher rooms, columns that the user chooses, and filters as chips."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar

from django.contrib.admin import ChoicesFieldListFilter, EmptyFieldListFilter, ModelAdmin, RelatedFieldListFilter
from django.contrib.admin.utils import label_for_field, lookup_field
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, ValidationError
from django.core.paginator import Page
from django.db.models import DateTimeField, F, Model, OrderBy, QuerySet
from django.db.models.fields.related import RelatedField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.timezone import localtime, now
from unfold import paginator
from unfold.decorators import display
from unfold.views import ChangeList

from benchbench.ir.measures import Measure, MeasureError
from benchbench.models import TaggedModel, leave_out_archived
from benchbench.site.panels import ADDITIONS, EMPTY, Addition
from benchbench.site.strict import StrictAdmin
from benchbench.timestamps import timestamp

COOKIE = "hidden_columns"  # its path is the list
CLOCK_SKEW = timedelta(minutes=1)  # between machines
COOKIE_SECONDS = 365 * 24 * 3600
HIDDEN, MEASURE, VIEW = "hide", "measure", "view"  # of an address: the hidden columns, a measure, the saved view
MEASURED = "measured"  # the column with the values of the measure in the address
EXACT_DIGITS = 2  # of an estimated number of rows
MOST_CHOICES = 50  # rows that a filter offers
CHEAP = 5000  # greatest cost, as PostgreSQL's planner has it, of counting all rows: about 50 ms


def render_distance(when: datetime) -> str:
    """Return how long ago a moment was, to one unit, with the time and its zone as the title: "3 hours ago".

    One that is ahead is named in full, which a unit would round down.
    """
    text, is_longer, _ = naturaltime(min(when, now())).partition(",")
    words = f"{text} ago" if is_longer else text
    full = date_format(localtime(when), "DATETIME_FORMAT")
    if when > now() + CLOCK_SKEW:
        words = full
    return format_html('<time datetime="{}" title="{}">{}</time>', timestamp(when), full, words)


@lru_cache(maxsize=256)  # the same function each time, which Django needs to sort by it
def build_moment(field: str) -> Callable[[Any], str | None]:
    """Return the column of a time as its distance from now: "created" for `created_at`."""

    @display(description=field.removesuffix("_at").replace("_", " "), ordering=field, empty_value="–")
    def moment(row: Model) -> str | None:
        when = getattr(row, field)
        return when and render_distance(when)

    moment.__name__ = field
    return moment


class AnnotatedList(ChangeList):
    """A list whose rows are annotated with what its columns show."""

    root_queryset: QuerySet[Model]

    def get_filters_params(self, params: object = None) -> dict[str, object]:
        """Return the filters of the address, without what says how to show the rows."""
        filters = super().get_filters_params(params)
        return {name: value for name, value in filters.items() if name not in (HIDDEN, MEASURE, VIEW)}

    def get_queryset(self, request: HttpRequest, exclude_parameters: object = None) -> QuerySet[Any]:
        self.root_queryset = self.model_admin.annotate_rows(request, self.root_queryset)
        return super().get_queryset(request, exclude_parameters)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Model]) -> list[Any]:
        """Return the order of the rows. Rows without a value come last, also where values fall."""
        fields = {field.name for field in self.model._meta.fields if field.is_relation or not field.null}
        terms = []
        for term in super().get_ordering(request, queryset):
            if isinstance(term, OrderBy):
                term = OrderBy(term.expression, descending=term.descending, nulls_last=True)
            elif term.startswith("-") and term[1:] not in fields | {"pk"}:
                term = F(term[1:]).desc(nulls_last=True)
            terms.append(term)
        return terms


class InfinitePaginator(paginator.InfinitePaginator):  # the name by which unfold knows not to show a count
    """A paginator of a large list: it reads one row beyond a page to learn whether another follows."""

    object_list: Any
    last = 0  # rows up to the end of the page that was read
    has_more = False

    def page(self, number: int | str) -> Page[Any]:
        start = (self.validate_number(number) - 1) * self.per_page
        rows = list(self.object_list[start : start + self.per_page + 1])
        self.has_more = len(rows) > self.per_page
        self.last = min(len(rows), self.per_page) and start + min(len(rows), self.per_page)
        return Page(rows[: self.per_page], start // self.per_page + 1, self)

    @cached_property
    def extent(self) -> str:
        """Return the number of rows in words: exact on the last page and where counting is cheap.

        Elsewhere it is what PostgreSQL's planner expects.
        """
        if not self.has_more:
            return f"{self.last:,}" if self.last else ""
        expected = json.loads(self.object_list.order_by().values("pk").explain(format="json"))[0]["Plan"]
        if expected["Total Cost"] <= CHEAP:
            return f"{self.object_list.count():,}"
        rows = int(expected["Plan Rows"])
        rounded = round(rows, min(0, EXACT_DIGITS - len(str(rows))))
        return f"about {rounded:,}" if rounded > self.last else f"more than {self.last:,}"


class ListAdmin(StrictAdmin):
    """Admin class of a list with numbers. Columns in `hidden_columns` are hidden until the user shows them.

    Hidden columns are in the page, so that the number of a column in an address (`?o=3`) means the same for everybody.
    """

    empty_value_display = "–"
    list_per_page = 25
    hidden_columns: ClassVar[tuple[str, ...]] = ()
    phone_columns: ClassVar[tuple[str, ...]] = ()  # columns of a narrow page after the first; () for the first two
    direct_action: ClassVar[str] = ""  # an action that has a button of its own next to the list of actions
    list_before_template = "admin/list_head.html"

    def list_measures(self, request: HttpRequest) -> list[str]:
        """Return the measures of which the user may show one as the column `measured`."""
        return []

    @property
    def additions(self) -> list[Addition]:
        return ADDITIONS[self.model]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return AnnotatedList

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the list with the annotations that its columns show."""
        for addition in self.additions:
            rows = addition.annotate(request, rows)
        return rows

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns, those of higher rooms before the owner, and times as distances from now."""
        times = {field.name for field in self.model._meta.fields if isinstance(field, DateTimeField)}
        columns = [build_moment(name) if name in times else name for name in super().get_list_display(request)]
        end = columns.index("owner") if "owner" in columns else len(columns)
        added = [column for addition in self.additions for column in addition.columns]
        return [*columns[:end], *added, *columns[end:]]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        if request.method == "POST" and "_columns" in request.POST:
            return self._choose_columns(request)
        response = super().changelist_view(request, extra_context)
        if listing := getattr(response, "context_data", {}).get("cl"):
            columns, chips = self.list_columns(request), list(_list_chips(listing))
            measures, measure = self.list_measures(request), read_measure(request)
            narrow = self.phone_columns or [name for name, _, is_hidden in columns if not is_hidden][:2]
            narrow = (*narrow[:-1], MEASURED) if measure else narrow
            wide_only = [name for name, *_ in columns if name not in narrow]
            response.context_data |= {"columns": columns, "chips": chips, "wide_only": wide_only}
            response.context_data |= {"measures": measures, "measure": measure, "empty": self._find_empty(listing)}
            if direct := self.get_actions(request).get(self.direct_action):
                response.context_data["direct"] = {"action": self.direct_action, "label": direct[2]}
        return response

    def _find_empty(self, listing: ChangeList) -> list[str]:
        """Return the columns that show nothing for the rows on this page, by which the list is not sorted."""
        columns, sorted_by, rows = listing.list_display, listing.get_ordering_field_columns(), list(listing.result_list)
        first = 1 + (columns[0] == "action_checkbox")  # the column before names the row
        return [
            getattr(column, "__name__", column)
            for number, column in enumerate(columns)
            if rows and number >= first and number not in sorted_by
            if not any(self._has_value(column, row) for row in rows)
        ]

    def _has_value(self, column: Any, row: Model) -> bool:
        try:
            return lookup_field(column, row, self)[2] not in (None, "", EMPTY)
        except ObjectDoesNotExist:
            return False

    def _choose_columns(self, request: HttpRequest) -> HttpResponse:
        """Store the unticked columns: in the address if that names some or a saved view, else in a cookie of this list.

        The measure is always in the address.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        address, chosen = request.GET.copy(), request.POST.getlist("column")
        hidden = ".".join(name for name, *_ in self.list_columns(request) if name not in (*chosen, MEASURED))
        address[MEASURE] = request.POST.get(MEASURE, "")
        if not address[MEASURE]:
            del address[MEASURE]
        in_address = {HIDDEN, VIEW} & set(address)
        if in_address:
            address[HIDDEN] = hidden
        response = redirect(f"{request.path}?{address.urlencode()}" if address else request.path)
        if not in_address:
            options: dict[str, Any] = {"httponly": True, "samesite": "Lax", "secure": request.is_secure()}
            response.set_cookie(COOKIE, hidden, COOKIE_SECONDS, path=request.path, **options)
        return response

    def list_columns(self, request: HttpRequest) -> list[tuple[str, str, bool]]:
        """Return name, label and whether it is hidden of each column but the first, which names the row."""
        chosen = request.GET.get(HIDDEN, request.COOKIES.get(COOKIE))
        hidden: Sequence[str] = self.hidden_columns if chosen is None else chosen.split(".")
        hidden = [name for name in hidden if name != MEASURED] + ([] if read_measure(request) else [MEASURED])
        columns = [(getattr(column, "__name__", column), column) for column in self.get_list_display(request)[1:]]
        return [(name, str(label_for_field(column, self.model, self)), name in hidden) for name, column in columns]


def read_measure(request: HttpRequest) -> str:
    """Return the measure in the address of a list; "" without one, and for a text that names none."""
    try:
        return str(Measure.parse(request.GET.get(MEASURE, "")))
    except MeasureError:
        return ""


def _list_chips(listing: ChangeList) -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Yield each filter of a list that has choices.

    A choice is its label, its address, and whether it is chosen; the address of a chosen one removes it.
    """
    empty = listing.model_admin.get_empty_value_display()  # of a filter for the rows without a related one
    for spec in listing.filter_specs:
        every, *choices = spec.choices(listing)
        write = capfirst if isinstance(spec, ChoicesFieldListFilter) else str
        chips = [
            (
                "none" if label in (empty, EMPTY) else write(str(label)),
                (every if chosen else choice)["query_string"],
                chosen,
            )
            for choice in choices
            for label, chosen in [(choice["display"], choice["selected"])]
        ]
        if chips:
            yield str(spec.title), chips


class VisibleFilter(RelatedFieldListFilter):
    """Filter of a list by a related row; it offers the newest rows that the user may see, and the chosen one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(self.lookup_choices) >= MOST_CHOICES:
            self.title = f"{self.title}, the newest {MOST_CHOICES}"

    def field_choices(self, field: RelatedField, request: HttpRequest, model_admin: ModelAdmin) -> list[Any]:
        related: type[Model] = field.related_model
        rows = model_admin.admin_site.get_model_admin(related).get_queryset(request)
        try:
            chosen = list(rows.filter(pk__in=self.lookup_val or []))
        except (ValueError, ValidationError):  # the list refuses the address
            chosen = []
        if issubclass(related, TaggedModel):
            rows = leave_out_archived(rows)
        newest = rows.order_by("-created_at")[:MOST_CHOICES]
        return [(str(row.pk), str(row)) for row in dict.fromkeys([*chosen, *newest])]

    def has_output(self) -> bool:
        return super().has_output() or bool(self.lookup_val)  # a filter without output would not filter


def filter_empty(title: str, empty: str, filled: str) -> type[EmptyFieldListFilter]:
    """Return a filter by whether a field is empty, in words of its own."""

    class NamedFilter(EmptyFieldListFilter):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.title = title

        def choices(self, changelist: ChangeList) -> Iterator[Any]:
            for choice, words in zip(super().choices(changelist), ("All", empty, filled), strict=True):
                yield {**choice, "display": words}

    return NamedFilter
