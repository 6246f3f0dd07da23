"""Forms of datasets: upload, freezing a draft, judgments."""

from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html

from apps.datasets.formats.rated import MAX_FACTOR
from apps.datasets.formats.registry import FORMATS, SOURCES
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import GRADES, LABEL_LENGTH, DatasetRecord
from apps.datasets.uploading import read_upload
from benchbench.access import may_change
from benchbench.site.pages import PageForm, Sections, SizedFileField


class RemovableForm(PageForm):
    """A form with a second button that removes its subject; then the field `needed` may stay empty."""

    needed: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[self.needed].required = not self.removes

    @property
    def removes(self) -> bool:
        """Return whether that button was pressed."""
        return "remove" in self.data


class GradeForm(RemovableForm):
    """Form for the grade of a given document. Removing its judgment needs no grade."""

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
    """Form for the label and note of the version that a draft becomes."""

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


DETECT = ("", "Detect from the content")


class DatasetForm(PageForm):
    content_field = "file"
    sections: ClassVar[Sections] = (
        ("", "", ("file", "format", "name", "description")),
        ("As the next version of a dataset", "", ("dataset", "version")),
        ("For some formats", "", ("split", "columns", "grade_factor")),
        ("For a log of queries", "", ("sample", "seed")),
    )

    file = SizedFileField(
        label="Judged queries",
        limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
        remedy="Import larger files with manage.py import_dataset.",
        help_text=SOURCES,
    )
    format = forms.ChoiceField(
        required=False,
        choices=[DETECT, *((name, format.label) for name, format in FORMATS.items())],
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Empty: the name in the file, or the name of the file.",
    )
    description = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 3}),
        help_text="The origin of the queries, and how they were judged.",
    )
    dataset = forms.ModelChoiceField(
        Dataset.objects.none(),
        required=False,
        label="Next version of",
        help_text="The file becomes its next version; earlier versions are kept.",
    )
    version = forms.CharField(
        max_length=LABEL_LENGTH,
        required=False,
        help_text="Label of the version, such as 2026-11. Empty: the one in the file, if any.",
    )
    split = forms.CharField(
        max_length=50,
        required=False,
        help_text="For BEIR (default: test) and Flowbaby (default: all).",
    )
    columns = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 3, "placeholder": "query_text=question\ngrade=stars"}),
        help_text=format_html(
            "For CSV and JSON Lines: one <code>{}</code> per line if the names differ; <code>{}</code> ignores a "
            "column.",
            *("field=column", "=column"),
        ),
    )
    grade_factor = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_FACTOR,
        help_text="For ratings of other tools that are not whole numbers: 10 makes the grade 7 of the rating 0.7.",
    )
    sample = forms.CharField(
        max_length=50,
        required=False,
        help_text=format_html(
            "Queries drawn from each third of the demand: <code>{}</code> (the default), or <code>{}</code> of head, "
            "torso and tail. Or <code>{}</code>.",
            *("100", "50,100,200", "all"),
        ),
    )
    seed = forms.IntegerField(required=False, min_value=0, help_text="Another seed draws another sample. Empty: 0.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(DatasetVersion, "dataset")

    def clean_dataset(self) -> Dataset | None:
        dataset: Dataset | None = self.cleaned_data["dataset"]
        if dataset is not None and not may_change(dataset, self.user):
            raise forms.ValidationError(f'You may not change "{dataset}": ask its owner, or leave it out.')
        return dataset

    def clean_columns(self) -> list[tuple[str, str]]:
        """Return pairs of a field ("" for an ignored column) and its column."""
        columns = []
        for line in filter(None, map(str.strip, self.cleaned_data["columns"].splitlines())):
            field, separator, column = (piece.strip() for piece in line.partition("="))
            if not separator or not column:
                raise forms.ValidationError(f'"{line[:60]}" is not field=column, such as query_text=question.')
            columns.append((field, column))
        return columns

    def record(self) -> DatasetRecord:
        """Return the dataset of the uploaded file. Raises the errors of its reader."""
        values = self.cleaned_data
        options = ("format", "split", "sample", "seed", "grade_factor")
        with self.content("columns", *options):
            record = read_upload(
                values["file"],
                **{name: values[name] for name in options},
                columns={field: column for field, column in values["columns"] if field},
                ignore=[column for field, column in values["columns"] if not field],
            )
        return replace(record, label=values["version"] or record.label)

    def get_target(self) -> dict[str, Any]:
        """Return the target of the import: a name, or a dataset whose next version it becomes."""
        values = self.cleaned_data
        return {"name": values["name"] or None, "next_of": values["dataset"]}
