"""The form of a mapping."""

from typing import Any

from django import forms

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from benchbench.site.pages import PageForm


class MappingForm(PageForm):
    dataset = forms.ModelChoiceField(Dataset.objects.none(), help_text="The judged queries.")
    collection = forms.ModelChoiceField(
        Collection.objects.none(), help_text="The documents in which the queries are searched."
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Empty: named after both.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Mapping, "dataset")
        self.choose(Mapping, "collection")
