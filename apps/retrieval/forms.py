"""The forms of an index and of an index grid."""

import json
from dataclasses import replace
from typing import Any, cast

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
from benchbench.site.pages import Folds, PageForm
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


SPEED = "Mixed saves a third of the time of encoding, at a cosine of .9999, on devices with bfloat16; this CPU has {}."
PRECISION_WORDS = {
    "float32": "float32",
    "mixed": "mixed: products in bfloat16",
    "bfloat16": "bfloat16, the weights too",
    "float16": "float16, the weights too",
}


class PromptField(forms.CharField):
    """A prompt: its last blank belongs to it, and it may have several lines."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            required=False,
            strip=False,
            max_length=LONGEST_PROMPT,
            label=f"{kind.capitalize()} prompt",
            widget=forms.Textarea({"rows": 1, "placeholder": "that of the model's configuration"}),
            help_text=f"Text before each {kind}, with its blank at the end.",
        )

    def to_python(self, value: object) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")  # browsers send lines so


class ServedForm(PageForm):
    """A form that leaves language models out where no server has any."""

    @property
    def lacks_llms(self) -> bool:
        return not self.is_bound and not load_servers()

    def list_folds(self) -> Folds:
        folds = super().list_folds()
        if not self.lacks_llms:
            return folds
        return [(title, text, left, seen) for title, text, fields, seen in folds if (left := _leave_out_llms(fields))]


def _leave_out_llms(fields: list[forms.BoundField]) -> list[forms.BoundField]:
    return [field for field in fields if not field.name.startswith("llm")]


class PromptsForm(PageForm):
    """A form with an encoder and its prompts, which offers the usual ones of its family."""

    query_prompt = PromptField("query")
    document_prompt = PromptField("document")

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


class IndexForm(PromptsForm, ServedForm, ParameterFields):
    collection = forms.ModelChoiceField(Collection.objects.none())
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "minilm"}),
        help_text="Every run label includes it; the name of an index builds its next version.",
    )
    encoder = forms.CharField(
        max_length=500,
        required=False,
        help_text="Published name of a sentence-transformers model; empty: lexical search only.",
    )
    precision = forms.ChoiceField(
        required=False,
        initial=PRECISIONS[0],
        choices=[(precision, PRECISION_WORDS[precision]) for precision in PRECISIONS],
    )
    lexical = forms.BooleanField(
        required=False,
        initial=True,
        label="BM25",
        help_text="For lexical and hybrid search; cheap to build.",
    )
    strategy = forms.ChoiceField(
        required=False,
        initial="flat",
        choices=[(name, strategy.words) for name, strategy in STRATEGIES.items()],
        help_text="What a query is compared with.",
    )
    size = forms.IntegerField(
        required=False,
        min_value=20,
        label="Chunk size",
        widget=forms.NumberInput({"placeholder": "whole documents"}),
        help_text="In characters; by level of detail and in trees, empty means 500.",
    )
    overlap = forms.IntegerField(
        required=False,
        min_value=0,
        label="Overlap",
        widget=forms.NumberInput({"placeholder": "0"}),
        help_text="In characters, below half the size; by level of detail and in trees, empty means 50.",
    )
    by_section = forms.BooleanField(
        required=False,
        label="Split at sections",
        help_text="No chunk spans two sections of a document, as always by level of detail and in trees.",
    )
    fit_encoder = forms.BooleanField(
        required=False,
        label="Divide at the encoder's limit",
        help_text="What the encoder would not read of a chunk or a whole document goes on in further chunks.",
    )
    llm = forms.CharField(
        required=False,
        max_length=500,
        label="Language model",
        widget=forms.TextInput({"placeholder": "llama3.2"}),
        help_text="Chooses or summarises; its name on the server.",
    )
    llm_server = forms.ChoiceField(
        required=False, label="Server", help_text="The server of the model, from BENCHBENCH_LLM_SERVERS."
    )

    sections = (("", "", ("collection", "name", "encoder", "lexical", "size", "overlap")),)
    folds = (
        ("Chunk boundaries: anywhere, and cut where the encoder stops reading", "", ("by_section", "fit_encoder")),
        ("Prompts and precision: the model's, float32", "", ("query_prompt", "document_prompt", "precision")),
        (
            "Strategy: flat",
            "Level of detail searches only the best sections of the best documents; a tree also finds chunks by "
            "summaries.",
            ("strategy", *INPUTS, "llm", "llm_server"),
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["precision"].help_text = SPEED.format("it" if has_bfloat16("cpu") else "none")
        self.choose(Index, "collection")
        fields = cast(dict[str, forms.ChoiceField], self.fields)
        fields["llm_server"].choices = [(name, name) for name in load_servers()]
        if self.lacks_llms:
            possible = [(name, strategy.words) for name, strategy in STRATEGIES.items() if not strategy.requires_llm]
            fields["strategy"].choices = possible
            fields["strategy"].help_text = "With a language model there are more: set BENCHBENCH_LLM_SERVERS."

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


class GridForm(ServedForm):
    collection = forms.ModelChoiceField(Collection.objects.none())
    strategies = forms.CharField(
        initial=f"{EXAMPLE}\nlod_embed",
        widget=forms.Textarea({"rows": 4}),
        help_text=(
            f"One per line, such as flat for whole documents, {EXAMPLE} or lod_embed(doc_top_k=3). Choose from "
            f"{', '.join(STRATEGIES)}."
        ),
    )
    encoders = forms.CharField(
        required=False,
        widget=forms.Textarea({"rows": 4}),
        help_text=f"One per line, with prompts if they are not the model's: {ENCODER_EXAMPLE}. Empty: lexical only.",
    )
    llms = forms.CharField(
        required=False,
        label="Language models",
        widget=forms.Textarea({"rows": 2}),
        help_text="One per line, for strategies that use one.",
    )
    llm_server = forms.ChoiceField(required=False, label="Server", help_text="The server of the language models.")
    lexical = forms.BooleanField(
        required=False, initial=True, label="BM25", help_text="For lexical and hybrid search; cheap to build."
    )

    sections = (("", "", ("collection", "lexical", "strategies", "encoders")),)
    folds = (("Language models: none", "", ("llms", "llm_server")),)

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
