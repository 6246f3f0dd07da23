"""Panels of an object's page: buttons, short tables of related rows, pages below it, and additions of other rooms.

A model's admin class is in its room, which never imports a higher room. The higher room's `admin.py` calls `add_to`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from json import JSONDecodeError, JSONDecoder
from typing import IO, Any

from django import forms
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import label_for_field, lookup_field
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.fields import UnfoldAdminReadonlyField
from unfold.utils import display_for_field, display_for_label

from benchbench.access import find_owned, visible

MAX_ROWS = 10
EMPTY = "–"
IDENTIFIER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Annotate = Callable[[HttpRequest, QuerySet[Any]], QuerySet[Any]]


def build_list_url(model: type[Model], **filters: Any) -> str:
    """Return the address of the list of `model`, filtered: `build_list_url(Run, benchmark__id__exact=…)`."""
    url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{url}?{urlencode(filters)}" if filters else url


def change_url(model: type[Model] | Model, pk: str | None = None) -> str:
    """Return the address of the page of one row."""
    key = pk if isinstance(model, type) else model.pk
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[key])


def may_open(request: HttpRequest, row: Any) -> bool:
    """Return whether the user may open the page of a row.

    A shared row names what it was made from, which need not be shared. The row that decides who sees it, by `through`,
    is looked up once a request, if it is known without loading others.
    """
    pages: Any = admin.site._registry.get(type(row))
    if pages is None or not pages.has_view_permission(request):
        return False
    if request.user.is_superuser or getattr(row, "owner_id", None) == request.user.pk:
        return True
    key = _find_deciding(pages.through, row)
    seen = request.__dict__.setdefault("openable", {})
    if key not in seen:
        is_decided = key[0] is not type(row)
        rows = visible(key[0]._default_manager.all(), request.user) if is_decided else pages.get_queryset(request)
        seen[key] = rows.filter(pk=key[1]).exists()
    return bool(seen[key])


def note_seen(request: HttpRequest, row: Model) -> None:
    """Spare `may_open` the look-up for a row that was loaded as visible to the user, and for others like it."""
    through = getattr(admin.site._registry[type(row)], "through", "")
    request.__dict__.setdefault("openable", {})[_find_deciding(through, row)] = True


def _find_deciding(through: str, row: Model) -> tuple[type[Model], object]:
    """Return model and key of the row that decides by `through` who sees `row`; its own if that takes loading rows."""
    inner, *names = row, *filter(None, through.split("__"))
    while len(names) > 1 and names[0] in inner._state.fields_cache:
        inner = getattr(inner, names.pop(0))
    if len(names) != 1:
        return type(row), row.pk
    return find_owned(type(row), through), getattr(inner, f"{names[0]}_id")


def write_reference(field: Any, relation: Any, row: Model) -> str:
    """Return the display of a read-only reference: a link if the user may open the page of its row."""
    return WRITE_LINK(field, relation, row) if may_open(field.form.request, row) else str(row)


WRITE_LINK = UnfoldAdminReadonlyField.get_admin_url
UnfoldAdminReadonlyField.get_admin_url = write_reference


@dataclass(frozen=True, slots=True)
class Button:
    """An action of the list, as a button on the page of one row; with `href` a plain link.

    A link that `returns` passes its own page as `?next=`, so that the target can lead back. `needs` is the permission
    that the target requires: `mappings.add_mapping`.
    """

    label: str
    icon: str
    action: str = ""
    href: str = ""
    primary: bool = False
    returns: bool = False
    needs: str = ""


def add_button(label: str, icon: str, model: str, *, primary: bool = False, **initial: Any) -> Button:
    """Return the button that leads to the form of a new row of `model` ("mappings.mapping"), with first values."""
    app, name = model.split(".")
    href = f"{reverse(f'admin:{app}_{name}_add')}?{urlencode(initial)}"
    return Button(label, icon, href=href, primary=primary, needs=f"{app}.add_{name}")


@dataclass(frozen=True, slots=True)
class Panel:
    """A table of the first related rows, in columns of the rows' own admin.

    `total` is the number of rows, if known; `every` is the address of the whole list; `page` returns the address of a
    row. A panel with `last` is shown below the panels of higher rooms.
    """

    title: str
    rows: QuerySet[Any]
    columns: Sequence[str]
    total: int | None = None
    every: str = ""
    page: Callable[[Any], str] = change_url
    last: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A panel as it is shown: per row the address of its page and its cells."""

    panel: Panel
    headers: list[str]
    rows: list[tuple[str, list[Any]]]
    has_more: bool


def load_table(panel: Panel, model_admin: ModelAdmin) -> Table:
    """Read the first rows of a panel, in one query, without the columns that are empty in all of them."""
    rows = list(panel.rows[: MAX_ROWS + 1])
    cells = [[cell(name, row, model_admin) for name in panel.columns] for row in rows[:MAX_ROWS]]
    filled = [index for index, column in enumerate(zip(*cells, strict=True)) if not index or set(column) != {EMPTY}]
    headers = [str(label_for_field(panel.columns[index], panel.rows.model, model_admin)) for index in filled]
    return Table(
        panel=panel,
        headers=headers,
        rows=[(panel.page(row), [line[index] for index in filled]) for row, line in zip(rows, cells, strict=False)],
        has_more=len(rows) > MAX_ROWS,
    )


def cell(name: str, row: Model, model_admin: ModelAdmin) -> Any:
    """Return the value that a list would show in the column `name`."""
    field, attribute, value = lookup_field(name, row, model_admin)
    if colours := getattr(attribute, "label", None):
        return display_for_label(value, EMPTY, colours)
    if field is not None:
        return display_for_field(value, field, EMPTY)
    return EMPTY if value in (None, "") else value


def load_facts(names: Sequence[str], row: Model, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
    """Return label and value of each field or column of `names` that has one, or says in words that it is empty."""
    facts = []
    for name in names:
        _, attribute, value = lookup_field(name, row, model_admin)
        empty = getattr(attribute, "empty_value_display", "")
        value = empty if value in (None, "") else cell(name, row, model_admin)
        if value not in ("", EMPTY):
            facts.append((str(label_for_field(name, type(row), model_admin)), value))
    return facts


def show_values(markup: str) -> str:
    """Return a JSON value, which unfold's markup has, as labelled values; EMPTY and other texts as they are."""
    try:
        value, _ = JSONDecoder().raw_decode(unescape(strip_tags(markup)).strip())
    except JSONDecodeError:
        return markup
    return render_value(value)


def render_value(value: Any) -> SafeString:
    """Return a value of JSON in HTML: an object as labelled values, numbers to six digits."""
    if isinstance(value, dict) and value:
        items = [(key.replace("_", " "), render_value(each)) for key, each in value.items()]
        return format_html('<dl class="bb-values">{}</dl>', format_html_join("", "<dt>{}</dt><dd>{}</dd>", items))
    if isinstance(value, list) and value:
        between = "" if isinstance(value[0], dict) else ", "
        return format_html_join(between, "{}", [(render_value(each),) for each in value])
    if isinstance(value, bool):
        return format_html("{}", "yes" if value else "no")
    if isinstance(value, int | float):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        return format_html("{}", text[1:] if text.startswith("0.") else text)
    if IDENTIFIER.fullmatch(str(value)):
        return format_html("<code>{}</code>", value)
    return format_html("{}", value or EMPTY)


@dataclass(frozen=True, slots=True)
class Page:
    """A page below the address of a model: `view` is called with the request, `model_admin` and the route's values.

    With the route and the name of a page of Django's (`add/`, `benchmarks_run_change`) it replaces that page.
    """

    route: str
    view: Callable[..., HttpResponseBase]
    name: str

    def build_pattern(self, model_admin: ModelAdmin) -> URLPattern:
        return path(self.route, model_admin.admin_site.admin_view(self.view), {"model_admin": model_admin}, self.name)


@dataclass(frozen=True, slots=True)
class Exports:
    """Formats of rows, by name with their labels. `build` returns the file name of a row in one, and what writes it."""

    labels: Mapping[str, str]
    build: Callable[[Any, str], tuple[str, Callable[[IO[bytes]], None]]]


@dataclass(frozen=True, slots=True)
class Addition:
    """Additions of a room: pages, for the page of a row panels and extra context of the template, columns of the list.

    `annotate` adds to the listed rows what their columns show. `delete` deletes a row with the room's rows on it,
    those of the models `along`. `exports` are the formats of rows.
    """

    pages: Sequence[Page]
    panels: Callable[[HttpRequest, Any], list[Panel]]
    context: Callable[[HttpRequest, Any], dict[str, object]]
    columns: Sequence[Callable[[Any], Any]]
    annotate: Annotate
    delete: Callable[[Any], None] | None
    along: Sequence[type[Model]]
    exports: Exports | None


def annotate_nothing(request: HttpRequest, rows: QuerySet[Model]) -> QuerySet[Model]:
    return rows


ADDITIONS: defaultdict[type[Model], list[Addition]] = defaultdict(list)


def add_to(
    model: type[Model],
    *,
    pages: Sequence[Page] = (),
    panels: Callable[[HttpRequest, Any], list[Panel]] = lambda request, obj: [],
    context: Callable[[HttpRequest, Any], dict[str, object]] = lambda request, obj: {},
    columns: Sequence[Callable[[Any], object]] = (),
    annotate: Annotate = annotate_nothing,
    delete: Callable[[Any], None] | None = None,
    along: Sequence[type[Model]] = (),
    exports: Exports | None = None,
) -> None:
    """Add to the admin class of `model`. Additions are in the order of the rooms: INSTALLED_APPS."""
    ADDITIONS[model].append(Addition(pages, panels, context, columns, annotate, delete, along, exports))


def add_note(field: forms.Field, address: str, *names: str) -> None:
    """Append to a field's help what `address` answers for the values of the fields `names`, whenever one changes."""
    changes = ", ".join(f"input delay:400ms from:#id_{name}" for name in names)
    field.help_text = format_html(
        '{} <div class="bb-field-note" aria-live="polite" hx-get="{}" hx-include="{}" hx-trigger="load, {}"></div>',
        field.help_text,
        address,
        ", ".join(f"[name={name}]" for name in names),
        changes,
    )
