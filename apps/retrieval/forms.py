"""The forms of an index and of an index grid."""

import json
from dataclasses import replace
from typing import Any

from django import forms
from django.conf import settings
from django.urls import reverse

from apps.collections.models import Collection
from apps.retrieval.encoders.admitting import describe_name_problem
from apps.retrieval.encoders.prompts import describe_unset_prompts, find_unset_prompts
from apps.retrieval.encoders.registry import has_bfloat16
from apps.retrieval.grids import ENCODER_EXAMPLE, EXAMPLE, Grid, read_encoder, read_strategy, write_encoder
from apps.retrieval.llms.servers import load_servers
from apps.retrieval.models import Index
from benchbench.errors import BenchbenchError
from benchbench.ir.encoding import DEFAULT, LONGEST_PROMPT, PRECISIONS, EncoderParameters
from benchbench.ir.planning.strategies import INPUTS, STRATEGIES, Parameter
from benchbench.site.pages import PageForm
from benchbench.site.panels import add_note


def build_field(parameter: Parameter) -> forms.Field:
    """Return the form field of a strategy's parameter. Empty means its default."""
    options: Any = {"required": False, "label": parameter.label, "help_text": parameter.help}
    if parameter.choices:
        words = parameter.choices.items()
        return forms.ChoiceField(
            choices=[("" if value == parameter.default else value, text) for value, text in words], **options
        )
    widget = forms.NumberInput({"placeholder": parameter.default})
    return forms.IntegerField(min_value=1, widget=widget, **options)


ParameterFields: Any = type("ParameterFields", (forms.Form,), {name: build_field(INPUTS[name]) for name in INPUTS})


SPEED = (
    "Vectors of each precision are another space. Mixed saves a third of the time of encoding, at a cosine of .9999, "
    "where the worker's device has bfloat16 (recent GPUs, AVX512-BF16, AMX), and is slower elsewhere. This CPU has {}."
)
PRECISION_WORDS = {
    "float32": "float32",
    "mixed": "mixed: products in bfloat16",
    "bfloat16": "bfloat16, the weights too",
    "float16": "float16, the weights too",
}


class PromptField(forms.CharField):
    """A prompt: its last blank belongs to it, and it may have several lines."""

    def __init__(self, kind: str, plural: str) -> None:
        super().__init__(
            required=False,
            strip=False,
            max_length=LONGEST_PROMPT,
            label=f"Prompt of {plural}",
            widget=forms.Textarea({"rows": 1, "placeholder": "that of the model's configuration"}),
            help_text=f"Text before each {kind}, with its blank at the end. Models such as E5, BGE and nomic need one.",
        )

    def to_python(self, value: object) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")  # browsers send lines so


class PromptsForm(PageForm):
    """A form with an encoder and its prompts, which offers the usual ones of its family."""

    query_prompt = PromptField("query", "queries")
    document_prompt = PromptField("document", "documents")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["encoder"].initial = settings.BENCHBENCH_DEFAULT_MODEL
        add_note(self.fields["encoder"], reverse("admin:index_prompts"), "encoder", "query_prompt", "document_prompt")

    def clean_encoder(self) -> str:
        name: str = self.cleaned_data["encoder"].strip()
        if sentence := describe_name_problem(name):
            raise forms.ValidationError(sentence)
        return name

    @property
    def encoder_parameters(self) -> EncoderParameters:
        """Return the prompts, None where the field is empty, and the precision."""
        values = self.cleaned_data
        precision = values.get("precision") or DEFAULT.precision
        return EncoderParameters(values["query_prompt"] or None, values["document_prompt"] or None, precision)


class IndexForm(PromptsForm, ParameterFields):
    collection = forms.ModelChoiceField(Collection.objects.none())
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "minilm"}),
        help_text="Keep it short: every run label includes it. Reuse a name to build its next version.",
    )
    encoder = forms.CharField(
        max_length=500,
        required=False,
        help_text=("Published name of a sentence-transformers model, for dense search. Empty: lexical search only."),
    )
    precision = forms.ChoiceField(
        required=False,
        choices=[(precision, PRECISION_WORDS[precision]) for precision in PRECISIONS],
    )
    lexical = forms.BooleanField(
        required=False,
        initial=True,
        label="BM25 index",
        help_text="For lexical and hybrid search. Cheap to build.",
    )
    strategy = forms.ChoiceField(
        required=False,
        initial="flat",
        choices=[(name, strategy.words) for name, strategy in STRATEGIES.items()],
        help_text="How documents are cut and searched.",
    )
    size = forms.IntegerField(
        required=False,
        min_value=20,
        label="Chunk size",
        widget=forms.NumberInput({"placeholder": "whole documents"}),
        help_text=(
            "Characters per chunk. Empty: whole documents, or 500 by level of detail and in trees. Many models read "
            "only the first 1,000 or 2,000."
        ),
    )
    overlap = forms.IntegerField(
        required=False,
        min_value=0,
        label="Overlap",
        widget=forms.NumberInput({"placeholder": "0"}),
        help_text="Characters that a chunk shares with the next; less than half the size. Empty: 0, or 50 for "
        "strategies with several levels.",
    )
    by_section = forms.BooleanField(
        required=False,
        label="Split at sections",
        help_text="No chunk spans two sections of a document. Levels and trees always do this.",
    )
    fit_encoder = forms.BooleanField(
        required=False,
        label="Divide at the end of the encoder's input",
        help_text="A chunk, or a whole document, that is longer than the encoder reads goes on in further chunks.",
    )
    llm = forms.CharField(
        required=False,
        max_length=500,
        label="Language model",
        widget=forms.TextInput({"placeholder": "llama3.2"}),
        help_text="The model that chooses or summarises, by its name on the server.",
    )
    llm_server = forms.ChoiceField(
        required=False, label="Server", help_text="The server of the model, from BENCHBENCH_LLM_SERVERS."
    )

    sections = (
        ("", "", ("collection", "name")),
        ("Search methods", "", ("encoder", "query_prompt", "document_prompt", "precision", "lexical")),
        (
            "Chunks",
            "Long documents are easier to find in chunks; a hit on a chunk counts for its document.",
            ("size", "overlap", "by_section", "fit_encoder"),
        ),
        (
            "Strategy",
            "Level of detail compares only the chunks of the best sections of the best documents. A tree also finds "
            "chunks by summaries of several chunks.",
            ("strategy", *INPUTS, "llm", "llm_server"),
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["precision"].help_text = SPEED.format("it" if has_bfloat16("cpu") else "none")
        self.choose(Index, "collection")
        choices = [(name, name) for name in load_servers()] or [("", "none configured")]
        self.fields["llm_server"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> None:
        values = self.cleaned_data
        is_flat = values.get("strategy", "flat") in ("", "flat")
        if values.get("fit_encoder") and values.get("encoder") == "":
            self.add_error("fit_encoder", "Only an encoder has an input that ends: choose one, or leave this out.")
        if values.get("size") or not is_flat:
            return
        if values.get("overlap"):
            self.add_error("overlap", "Whole documents do not overlap: set a chunk size.")
        if values.get("by_section"):
            self.add_error("by_section", "Whole documents are not split: set a chunk size.")

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the strategy's parameters that were filled in."""
        values = self.cleaned_data
        parameters = {name: None if values[name] == "" else values[name] for name in ("size", "overlap", *INPUTS)}
        parameters["fit_encoder"] = values["fit_encoder"] or None
        if values["strategy"] in ("", "flat"):
            parameters["sections"] = values["by_section"] or None
            if not values["size"]:
                parameters["overlap"] = None
        return {name: value for name, value in parameters.items() if value is not None}


def split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


class GridForm(PageForm):
    collection = forms.ModelChoiceField(Collection.objects.none())
    strategies = forms.CharField(
        initial=f"{EXAMPLE}\nlod_embed",
        widget=forms.Textarea({"rows": 4}),
        help_text=(
            f"One per line, with parameters that differ from the defaults: {EXAMPLE}, lod_embed(doc_top_k=3). Plain "
            f"flat means whole documents. Choose from {', '.join(STRATEGIES)}."
        ),
    )
    encoders = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 4}),
        help_text="Published names of sentence-transformers models, one per line, with prompts and a precision where "
        f"they differ from the model's: {ENCODER_EXAMPLE}. Empty: lexical search only.",
    )
    llms = forms.CharField(
        required=False,
        label="Language models",
        widget=forms.Textarea({"rows": 2}),
        help_text="One per line, for strategies that use one.",
    )
    llm_server = forms.ChoiceField(required=False, label="Server", help_text="The server of the language models.")
    lexical = forms.BooleanField(
        required=False, initial=True, label="BM25 index", help_text="For lexical and hybrid search. Cheap to build."
    )

    sections = (
        ("", "", ("collection",)),
        ("Strategies", "How documents are cut and searched.", ("strategies",)),
        ("Models", "Each strategy is combined with each model.", ("encoders", "lexical", "llms", "llm_server")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Index, "collection")
        self.fields["llm_server"].choices = [("", "the first server"), *((name, name) for name in load_servers())]  # type: ignore[attr-defined]
        self.fields["encoders"].initial = settings.BENCHBENCH_DEFAULT_MODEL

    def clean_strategies(self) -> list[tuple[str, dict[str, object]]]:
        try:
            return [read_strategy(line) for line in split_lines(self.cleaned_data["strategies"])]
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None

    def clean_encoders(self) -> list[tuple[str, EncoderParameters]]:
        try:
            encoders = [read_encoder(line) for line in split_lines(self.cleaned_data["encoders"])]
        except BenchbenchError as error:
            raise forms.ValidationError(error.message) from None
        if wrong := [sentence for name, _ in encoders if (sentence := describe_name_problem(name))]:
            raise forms.ValidationError(wrong)
        return encoders or [("", DEFAULT)]

    def clean_llms(self) -> list[str]:
        return split_lines(self.cleaned_data["llms"])

    def offer_prompts(self) -> dict[str, object]:
        """Return sentences about encoders without their usual prompts, and the fields with these prompts."""
        sentences, lines = [], []
        for name, parameters in self.cleaned_data["encoders"]:
            if unset := find_unset_prompts(name, parameters):
                sentences.append(describe_unset_prompts(name, unset))
            lines.append(write_encoder(name, replace(parameters, **unset)))
        return {"sentences": sentences, "usual": json.dumps({"encoders": "\n".join(lines)})}

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
