"""Forms of datasets: upload, freezing a draft, judgments."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.utils.html import format_html

from apps.collections.columns import ColumnChoices
from apps.datasets.formats.rated import MAX_FACTOR
from apps.datasets.formats.registry import FORMATS, ONE_FILE, SEVERAL_FILES
from apps.datasets.formats.table import read_columns
from apps.datasets.importing import FrozenError, foresee, list_warnings
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import GRADES, LABEL_LENGTH, DatasetError, DatasetRecord, QueryRecord
from apps.datasets.uploading import FilesField, read_upload, upload_turn
from benchbench.access import may_change
from benchbench.errors import BenchbenchError
from benchbench.files.columns import OF_JUDGMENTS
from benchbench.site.pages import PageForm, Remedy, Sections


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


class JudgedFilesField(FilesField):
    """A field of files of judged queries, in any format of datasets."""

    formats_template = "datasets/formats.html"
    one_file, several = ONE_FILE, SEVERAL_FILES

    def __init__(self, *, label: str, remedy: str, required: bool = True) -> None:
        super().__init__(
            label=label,
            remedy=remedy,
            required=required,
            limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
            help_text="A table with a row for each judgment: query, document, grade. Or files of another format.",
        )


FIRST = 5  # queries of a file that a preview shows
DETECT = ("", "Detect from the content")


class QueriesForm(PageForm):
    """Form with files of judged queries in the field `source`, and the options of their readers.

    `choices` have the columns of a table that was read, or refused, with their fields; the preview lets choose others.
    """

    source: ClassVar[str] = "file"
    options: ClassVar[tuple[str, ...]] = ("format", "split", "columns", "grade_factor", "sample", "seed")
    content_options: ClassVar[tuple[str, ...]] = options

    format = forms.ChoiceField(
        required=False,
        choices=[DETECT, *((name, format.label) for name, format in FORMATS.items())],
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
            "For tables: one <code>{}</code> per line if the names differ; <code>{}</code> ignores a column.",
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
        self.choices = ColumnChoices(self.data, OF_JUDGMENTS, keeps_guesses=False)

    def clean_columns(self) -> dict[str, object]:
        """Return the options `columns` and `ignore`: what is written in the field goes before what was chosen."""
        is_table = self.cleaned_data.get("format", "") in ("", "table", "two-files")
        try:
            return read_columns(self.choices.list_pairs(self.cleaned_data["columns"], with_selects=is_table))
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None

    def record(self) -> DatasetRecord:
        """Return the dataset of the uploaded files. Raises the errors of its reader."""
        values = self.cleaned_data
        options = {name: values[name] for name in self.options if name != "columns"} | values["columns"]
        with self.content(*self.options):
            try:
                record = read_upload(values[self.source], **options)
            except DatasetError as error:
                self.choices.show(error.columns)
                if not self.data.get("columns"):
                    error.message = self.choices.name_fields(error.message)
                raise
        self.choices.show(record.columns)
        return record

    def preview(self) -> dict[str, Any]:
        """Return what a preview shows of the uploaded files: the `first` queries, each with its document's title.

        A name or version that is taken is an error of its field, and does not hide the content.
        """
        with upload_turn():
            record = self.record()
            first = record.queries[:FIRST]
            becomes = ""
            try:
                becomes = self.foresee(record)
            except BenchbenchError as error:
                self.present(error)
            grades = Counter(judgment.grade for query in record.queries for judgment in query.judgments)
            return {
                "becomes": becomes,
                "record": replace(record, queries=[]),  # they go with the turn
                "first": list(zip(first, self.name_documents(first), strict=True)),
                "format": FORMATS[record.source_format].label,
                "queries": len(record.queries),
                "judgments": grades.total(),
                "grades": dict(sorted(grades.items(), reverse=True)),
                "warnings": list_warnings(record),
            }

    def foresee(self, record: DatasetRecord) -> str:
        """Return the effect of an import on existing datasets in words, if any."""
        return ""

    def name_documents(self, queries: Sequence[QueryRecord]) -> list[str]:
        """Return by query the title of the first judgment's document, where a chosen collection has it."""
        return [""] * len(queries)


class DatasetForm(QueriesForm):
    content_field = "file"
    sections: ClassVar[Sections] = (("", "", ("file", "name")),)
    folds: ClassVar[Sections] = (
        ("Version and description: a new dataset", "", ("dataset", "version", "description")),
        ("Format, split, columns, grade factor, sample: detected", "", QueriesForm.options),
    )

    file = JudgedFilesField(label="Judged queries", remedy="Import larger files with manage.py import_dataset.")
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(DatasetVersion, "dataset")

    def clean_dataset(self) -> Dataset | None:
        dataset: Dataset | None = self.cleaned_data["dataset"]
        if dataset is not None and not may_change(dataset, self.user):
            raise forms.ValidationError(f'You may not change "{dataset}": ask its owner, or leave it out.')
        return dataset

    def record(self) -> DatasetRecord:
        record = super().record()
        return replace(record, label=self.cleaned_data["version"] or record.label)

    def foresee(self, record: DatasetRecord) -> str:
        return foresee(record, owner=self.user, **self.get_target())

    def present(self, error: BenchbenchError) -> None:
        super().present(error)
        if isinstance(error, FrozenError):
            self.remedy = Remedy(f"Import as version {error.free_label}", json.dumps({"version": error.free_label}))

    def get_target(self) -> dict[str, Any]:
        """Return the target of the import: a name, or a dataset whose next version it becomes."""
        values = self.cleaned_data
        return {"name": values["name"] or None, "next_of": values["dataset"]}
