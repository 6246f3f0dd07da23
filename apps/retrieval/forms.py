"""The form of an index."""

from typing import Any

from django import forms
from django.conf import settings

from apps.collections.models import Collection
from apps.retrieval.models import Index
from benchbench.site.pages import PageForm


class IndexForm(PageForm):
    collection = forms.ModelChoiceField(Collection.objects.none())
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "minilm"}),
        help_text="Short: it is part of the label of every run. "
        "A name that the collection already has makes its next version.",
    )
    encoder = forms.CharField(
        max_length=500,
        required=False,
        help_text=(
            "A sentence-transformers model, by name or local path: it turns texts into vectors for dense search. "
            "Empty: lexical search only."
        ),
    )
    lexical = forms.BooleanField(
        required=False,
        initial=True,
        label="BM25 too",
        help_text="For lexical and hybrid search. Cheap to build.",
    )
    size = forms.IntegerField(
        required=False,
        min_value=20,
        label="Chunk size",
        widget=forms.NumberInput({"placeholder": "whole documents"}),
        help_text="Characters a chunk. Empty: whole documents. Many models read only the first 1,000 or 2,000.",
    )
    overlap = forms.IntegerField(
        required=False,
        min_value=0,
        label="Overlap",
        widget=forms.NumberInput({"placeholder": "0"}),
        help_text="Characters that a chunk shares with the next; less than half the size.",
    )

    sections = (
        ("", "", ("collection", "name")),
        ("What it can search", "", ("encoder", "lexical")),
        (
            "Chunks",
            "Long documents are found better in parts; a hit on a part counts for its document.",
            ("size", "overlap"),
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Index, "collection")
        self.fields["encoder"].initial = settings.BENCHBENCH_DEFAULT_MODEL

    def clean(self) -> None:
        size, overlap = self.cleaned_data.get("size"), self.cleaned_data.get("overlap")
        if overlap and not size:
            self.add_error("overlap", "Whole documents do not overlap: state a chunk size too.")
