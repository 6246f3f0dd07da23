"""Forms that several users fill in at once: merged field by field, with a refusal where two changed the same field.

A page holds each value that it showed, as Django's hidden initial values. What another user changed since, and this one
left alone, stays as the other user made it. A form without these values, such as a program's, overwrites.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.db import transaction
from django.db.models import Model
from django.forms.boundfield import BoundField
from django.http import HttpRequest

from benchbench.database.failures import read_again
from benchbench.site.history import find_last_author
from benchbench.site.lengths import LimitedForm

MAX_LENGTH = 200  # characters of another user's value


@dataclass(frozen=True, slots=True)
class Edited:
    """The row that a form changes: `lock` is the row that others lock to change it, `read` returns its values now.

    `author` is who changed it last; "": as its history says.
    """

    row: Model
    lock: Model
    read: Callable[[], dict[str, Any]]
    author: str = ""

    @contextmanager
    def locked(self, request: HttpRequest) -> Iterator[None]:
        """Lock the row while a submission is merged and stored."""
        if request.method != "POST":
            yield
            return
        with transaction.atomic():
            read_again(type(self.lock)._base_manager.select_for_update(no_key=True), self.lock.pk)
            yield


class MergingForm(LimitedForm):
    """Mixin of a form that changes a row. Call it in the transaction that locked the row."""

    edited: Model | None = None
    author = ""  # of the last change of the row; "": as its history says

    def start_merging(self, row: Model, names: Iterable[str], *, author: str = "") -> None:
        """Merge the fields `names`, whose initial values are those of `row` now."""
        self.edited, self.author = row, author
        knows_shown = any(key.startswith("initial-") for key in self.data)
        for name in names:
            field = self.fields[name]
            field.show_hidden_initial = not field.disabled and (knows_shown or not self.is_bound)

    def clean(self) -> Any:
        cleaned = super().clean() or self.cleaned_data
        if self.is_bound and self.edited is not None:
            for name, field in self.fields.items():
                if field.show_hidden_initial:
                    self._merge(self[name], cleaned)
        return cleaned

    def _merge(self, bound: BoundField, cleaned: dict[str, object]) -> None:
        """Keep another user's change of a field, or refuse this user's; the next submission knows the value."""
        field, name, now = bound.field, bound.name, bound.initial
        initial = field.hidden_widget().value_from_datadict(self.data, self.files, bound.html_initial_name)
        if not _differ(field, now, initial):
            return
        is_touched = _differ(field, initial, bound.data) or getattr(self, "removes", False)
        self._put(bound.html_initial_name, field.hidden_widget(), field.prepare_value(now))
        if not is_touched:
            self._put(bound.html_name, field.widget, field.prepare_value(now))
            if hasattr(self, "instance"):
                cleaned.pop(name, None)  # the instance keeps its value
            else:
                cleaned[name] = field.clean(field.prepare_value(now))
        elif _differ(field, now, bound.data) or getattr(self, "removes", False):
            author = self.author or find_last_author(cast(Model, self.edited)) or "Another user"
            self.add_error(
                name,
                f"{author} changed this to “{_describe(field, now)}” after you opened the page. Save again to replace "
                "that with yours, or reload the page.",
            )

    def _put(self, key: str, widget: forms.Widget, value: Any) -> None:
        """Put a value into the submitted data, as the widget would send it."""
        data: Any = self.data
        if not getattr(data, "_mutable", True):
            data = data.copy()
        self.data = data
        if isinstance(widget, forms.MultiWidget):
            for number, piece in enumerate(widget.decompress(value) or ()):
                self._put(f"{key}_{number}", widget.widgets[number], piece)
        elif isinstance(value, list | tuple) and hasattr(data, "setlist"):
            data.setlist(key, [str(item) for item in value])
        elif value is None or (value is False and isinstance(widget, forms.CheckboxInput)):
            data.pop(key, None)
        else:
            data[key] = value if isinstance(value, str) else str(value)


def _differ(field: forms.Field, initial: object, data: object) -> bool:
    return field.has_changed(_unify(field, initial), _unify(field, data))


def _unify(field: forms.Field, value: object) -> object:
    """Return a text as its field reads it from any browser or program: ends of lines alike, no blanks at its ends.

    A stored text may have what a browser never sends back, such as the last end of a line.
    """
    if not isinstance(value, str):
        return value
    value = value.replace("\r\n", "\n")
    return value.strip() if getattr(field, "strip", False) else value


def _describe(field: forms.Field, value: object) -> str:
    if isinstance(field, forms.ModelChoiceField):
        keys = value if isinstance(value, list | tuple) else [value]
        choices: Any = field.queryset
        rows = choices.filter(pk__in=[getattr(key, "pk", key) for key in keys if key])
        return ", ".join(map(str, rows))[:MAX_LENGTH] or "–"
    text = str(field.prepare_value(value)) if value not in (None, "") else "–"
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
