"""The form of an index grid."""

from typing import Any

from django import forms
from django.conf import settings

from apps.collections.models import Collection
from apps.retrieval.encoders.admitting import no_name
from apps.retrieval.grids.planning import Grid
from apps.retrieval.grids.reading import EXAMPLE, read_strategy
from apps.retrieval.llms.servers import servers
from apps.retrieval.models import Index
from apps.retrieval.strategies import STRATEGIES
from benchbench.errors import BenchbenchError
from benchbench.site.pages import PageForm


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


class GridForm(PageForm):
    collection = forms.ModelChoiceField(Collection.objects.none())
    strategies = forms.CharField(
        initial=f"{EXAMPLE}\nlod_embed",
        widget=forms.Textarea({"rows": 4}),
        help_text=f"One a line, with parameters where they are not the defaults: {EXAMPLE}, lod_embed(doc_top_k=3). "
        f"flat alone is whole documents. There are {', '.join(STRATEGIES)}.",
    )
    encoders = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 4}),
        help_text="Sentence-transformers models by their published names, one a line. None: lexical search only.",
    )
    llms = forms.CharField(
        required=False,
        label="Language models",
        widget=forms.Textarea({"rows": 2}),
        help_text="One a line, for the strategies that ask one.",
    )
    llm_server = forms.ChoiceField(required=False, label="Server", help_text="Where the language models run.")
    lexical = forms.BooleanField(
        required=False, initial=True, label="BM25 too", help_text="For lexical and hybrid search. Cheap to build."
    )

    sections = (
        ("", "", ("collection",)),
        ("Every strategy", "How documents are cut and searched.", ("strategies",)),
        ("By every model", "What texts are compared by.", ("encoders", "lexical", "llms", "llm_server")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Index, "collection")
        self.fields["llm_server"].choices = [("", "the first"), *((name, name) for name in servers())]  # type: ignore[attr-defined]
        self.fields["encoders"].initial = settings.BENCHBENCH_DEFAULT_MODEL

    def clean_strategies(self) -> list[Any]:
        try:
            return [read_strategy(line) for line in lines_of(self.cleaned_data["strategies"])]
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None

    def clean_encoders(self) -> list[str]:
        names = lines_of(self.cleaned_data["encoders"])
        if wrong := [sentence for name in names if (sentence := no_name(name))]:
            raise forms.ValidationError(wrong)
        return names or [""]

    def clean_llms(self) -> list[str]:
        return lines_of(self.cleaned_data["llms"])

    @property
    def grid(self) -> Grid:
        values = self.cleaned_data
        provider = {"provider": values["llm_server"]} if values["llm_server"] else {}
        return Grid(
            strategies=values["strategies"],
            encoders=values["encoders"],
            llms=[(llm, provider) for llm in values["llms"]],
            lexical=values["lexical"],
        )
