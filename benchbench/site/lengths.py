"""Forms and fields whose texts have a limited length or number: more is refused before it is read."""

from typing import Any

from django import forms
from django.contrib.postgres.forms import SimpleArrayField
from django.contrib.postgres.validators import ArrayMaxLengthValidator
from django.forms.utils import ErrorList
from django.http import QueryDict

LONGEST_TEXT = 100_000  # characters; a field may allow fewer


class LimitedForm(forms.BaseForm):
    """Mixin of a form. A text that is too long is not shown again either."""

    def full_clean(self) -> None:
        lengths = self._find_too_long() if self.is_bound else {}
        if lengths:
            data: Any = self.data
            data = data.copy()
            for name in lengths:
                data.pop(self.add_prefix(name))
            self.data = data
        super().full_clean()
        for name, length in lengths.items():
            message = f"This has {length:,} characters; at most {LONGEST_TEXT:,} are read. Shorten it."
            self.errors[name] = ErrorList([message], renderer=self.renderer)
            self.cleaned_data.pop(name, None)

    def _find_too_long(self) -> dict[str, int]:
        """Return the greatest length of the texts of each field that has one that is too long."""
        data = self.data
        lengths = {}
        for name in self.fields:
            key = self.add_prefix(name)
            values = data.getlist(key) if isinstance(data, QueryDict) else [data.get(key)]
            length = max((len(value) for value in values if isinstance(value, str)), default=0)
            if length > LONGEST_TEXT:
                lengths[name] = length
        return lengths


class FewTextsField(SimpleArrayField):
    """Texts between commas, of which too many are refused before each is read."""

    def to_python(self, value: object) -> Any:
        if isinstance(value, str):
            ArrayMaxLengthValidator(self.max_length)(value.split(self.delimiter))
        return super().to_python(value)
