"""Form fields that take several values."""

from collections.abc import Callable
from typing import Any

from django import forms

from benchbench.ir.planning.axes import SWITCH, Axis
from benchbench.ir.planning.labels import AXIS_WORDS


class ListField(forms.CharField):
    """Values with commas between them; `read` makes them of a text, or raises ValueError, whose text is the part."""

    def __init__(self, read: Callable[[str], list[Any]], expects: str, **kwargs: Any) -> None:
        self.read = read
        self.expects = expects
        super().__init__(required=False, **kwargs)

    def clean(self, value: Any) -> list[Any]:
        try:
            return self.read(str(value or ""))
        except ValueError as error:
            raise forms.ValidationError(f"“{error}” is not {self.expects}. Put commas between several.") from None


class SwitchField(forms.ChoiceField):
    """Off, on, or both, as a list of truth values."""

    def __init__(self, read: Callable[[str], list[Any]], **kwargs: Any) -> None:
        self.read = read
        choices = [("off", "off"), ("on", "on"), ("both", "both: with and without")]
        super().__init__(choices=choices, initial="off", **kwargs)

    def clean(self, value: Any) -> list[Any]:
        return self.read(super().clean(value))


def field_of(axis: Axis) -> forms.Field:
    """Return the form field that asks for the values of an axis: ticks, a switch, or a text with commas."""
    words = AXIS_WORDS[axis.field]
    asked: dict[str, Any] = {"label": words.label, "help_text": words.help}
    if axis.kind is SWITCH:
        return SwitchField(axis.read, **asked)
    if words.choices:
        choices = list(words.choices.items())
        return forms.MultipleChoiceField(choices=choices, initial=[axis.default], required=False, **asked)
    return ListField(axis.read, axis.part.expects, initial=axis.default_text, **asked)
