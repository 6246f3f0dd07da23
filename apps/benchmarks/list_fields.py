"""Form fields that take several values with commas between them."""

from collections.abc import Callable
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget


def by_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


class ListField(forms.CharField):
    """Values with commas between them, by `split`; `read` makes one of a text, or raises ValueError."""

    def __init__(
        self,
        read: Callable[[str], Any],
        expects: str,
        *,
        split: Callable[[str], list[str]] = by_commas,
        **kwargs: Any,
    ) -> None:
        self.read = read
        self.expects = expects
        self.split = split
        super().__init__(required=False, widget=UnfoldAdminTextInputWidget(), **kwargs)

    def clean(self, value: Any) -> list[Any]:
        return [self._one(part) for part in self.split(str(value or ""))]

    def _one(self, part: str) -> Any:
        try:
            return self.read(part)
        except ValueError:
            raise forms.ValidationError(f"“{part}” is not {self.expects}. Put commas between several.") from None


def share_or_none(text: str) -> float | None:
    return None if text.lower() in ("none", "null", "off") else float(text)


def pair(text: str) -> list[float]:
    return [float(weight) for weight in text.split(":")]
