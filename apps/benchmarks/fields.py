"""Fields that the forms of new benchmarks and of imported runs share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms

UNRESOLVED = [("count", "count them as not found"), ("drop", "leave them out")]
EMPTY_QUERIES = [("zero", "count them as 0"), ("skip", "leave them out of the means")]
WEIGHTINGS = [("", "by demand, if their weights differ"), ("equal", "every query alike"), ("demand", "by demand")]


POLICIES = {
    "unresolved": ("unresolved judgments", dict(UNRESOLVED)),
    "empty_queries": ("queries without a relevant judgment", dict(EMPTY_QUERIES)),
    "weighting": ("weight of a query in the means", dict(WEIGHTINGS)),
}


def describe_policies(policies: Mapping[str, object]) -> dict[str, object]:
    """Return policies by the words of their form."""
    words = {name: POLICIES.get(name, (name, {})) for name in policies}
    return {words[name][0]: words[name][1].get(str(choice), choice) for name, choice in policies.items()}


class ExcludeSelfField(forms.BooleanField):
    """The policy `exclude_self` of a new benchmark."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            label="Exclude each query's document",
            help_text="Rankings leave out the document whose id is the query's key. For queries that were taken from "
            "documents, as in ArguAna and Quora.",
        )


class ListField(forms.CharField):
    """Comma-separated values. `read` parses the text, or raises ValueError with the wrong part as its text."""

    def __init__(self, read: Callable[[str], Sequence[object]], expects: str, **kwargs: Any) -> None:
        self.read = read
        self.expects = expects
        super().__init__(required=False, **kwargs)

    def clean(self, value: object) -> Sequence[object]:
        try:
            return self.read(str(value or ""))
        except ValueError as error:
            raise forms.ValidationError(f"“{error}” is not {self.expects}. Separate several with commas.") from None


class SwitchField(forms.ChoiceField):
    """Off, on, or both, as a list of booleans."""

    def __init__(self, read: Callable[[str], Sequence[object]], **kwargs: Any) -> None:
        self.read = read
        choices = [("off", "off"), ("on", "on"), ("both", "both: with and without")]
        super().__init__(choices=choices, initial="off", **kwargs)

    def clean(self, value: object) -> Sequence[object]:
        return self.read(super().clean(value))
