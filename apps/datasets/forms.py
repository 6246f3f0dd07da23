"""What the admin asks for when a dataset is uploaded."""

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from benchbench.pages import PageForm, require_size


class DatasetForm(PageForm):
    content_field = "file"

    file = forms.FileField(
        label="Judged queries",
        widget=forms.ClearableFileInput({"accept": ".json,application/json", "class": "bb-file"}),
        help_text=(
            "JSON, schema 1.0: <code>"
            '{"schema_version": "1.0", "queries": [{"query_key": "q1", "query_text": "…", '
            '"relevant_docs": [{"doc_ref": {"uri": "…"}, "relevance_grade": 3}]}]}</code>. '
            "A doc_ref may name document_id, uri, content_hash, path or file_name; grades go from 0 to 3."
        ),
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Empty: the name that the file states.",
    )
    description = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3}),
        help_text="Where the queries come from, who judged them, how.",
    )

    def clean_file(self) -> UploadedFile:
        upload: UploadedFile = self.cleaned_data["file"]
        require_size(
            upload, settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES, "Other formats without that limit: see manage.py help."
        )
        return upload
