"""Forms that judge a document and freeze a draft."""

from typing import Any, ClassVar

from django import forms

from apps.datasets.records import GRADES, LABEL_LENGTH
from benchbench.site.pages import PageForm, Sections


class RemovableForm(PageForm):
    """A form with a second button, which takes away what it is about; then the field `needed` may stay empty."""

    needed: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[self.needed].required = not self.removes

    @property
    def removes(self) -> bool:
        """Whether that button was pressed."""
        return "remove" in self.data


class GradeForm(RemovableForm):
    """The grade of a document that is known. Removing its judgment needs none."""

    needed = "grade"
    sections: ClassVar[Sections] = (("", "", ("grade", "note")),)

    grade = forms.IntegerField(
        min_value=GRADES.start,
        max_value=GRADES.stop - 1,
        help_text="0: judged, and not relevant. Above 0: relevant; a higher grade is more relevant.",
    )
    note = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 2}),
        help_text="The reason, for later readers.",
    )
    next = forms.CharField(required=False, widget=forms.HiddenInput())


class FreezeForm(PageForm):
    """What is said of the version that a draft becomes."""

    sections: ClassVar[Sections] = (("", "", ("label", "note")),)

    label = forms.CharField(
        max_length=LABEL_LENGTH,
        required=False,
        help_text="Such as 2026-11; no two versions of a dataset have the same label. It may be empty.",
    )
    note = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 2}),
        help_text="What was changed and why, for later readers.",
    )
    next = forms.CharField(required=False, widget=forms.HiddenInput())
