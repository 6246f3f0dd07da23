"""Forms of a mapping, and of a judgment whose document is looked up."""

from typing import Any, ClassVar

from django import forms

from apps.collections.models import Collection
from apps.datasets.forms import GradeForm
from apps.datasets.models import Dataset
from apps.datasets.records import DOC_REF_KEYS
from apps.mappings.models import Mapping
from benchbench.site.pages import PageForm, Sections


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


class NewJudgmentForm(GradeForm):
    """A judgment of a document that the dataset has not judged for the query yet, or has under another reference."""

    sections: ClassVar[Sections] = (("", "", ("key", "reference", "grade", "note", "without_document")),)

    key = forms.ChoiceField(
        label="Document by",
        choices=[(key, key.replace("_", " ")) for key in DOC_REF_KEYS],
    )
    reference = forms.CharField(
        label="Reference",
        help_text="The document's own reference, as in a collection; mappings find the document by it.",
    )
    without_document = forms.BooleanField(
        required=False,
        help_text="State it although no collection of the dataset has it: it counts as a document that nothing finds.",
    )

    @property
    def doc_ref(self) -> dict[str, str]:
        """The reference, as judgments hold it."""
        return {self.cleaned_data["key"]: self.cleaned_data["reference"].strip()}
