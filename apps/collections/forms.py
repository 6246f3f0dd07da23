"""The form of an uploaded collection."""

from django import forms

from apps.collections.models import Collection
from benchbench.site.pages import PageForm, SizedFileField


class CollectionForm(PageForm):
    content_field = "file"

    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "Product handbook, May"}),
        help_text="What your team calls these documents.",
    )
    file = SizedFileField(
        label="Corpus",
        accept=".jsonl,.gz,.zip",
        limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
        remedy="Larger ones are imported by the command manage.py import_collection.",
        help_text=(
            "A file ending in <code>.jsonl</code> or <code>.jsonl.gz</code>, one document a line, as BEIR writes them: "
            '<code>{"_id": "d1", "title": "…", "text": "…"}</code>; <code>uri</code> and <code>metadata</code> may '
            "follow. "
            "Judgments will find a document by its <code>_id</code>, its uri or the hash of its content. "
            "Or a <code>.zip</code> of Markdown, HTML and text files, or of sectioned documents."
        ),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Collection.objects.filter(owner=self.user, name=name).exists():
            raise forms.ValidationError(
                f'You have a collection "{name}" already: choose another name. '
                "To bring it up to date, run manage.py import_collection."
            )
        return name
