"""The form of the page that tries a query: one or two ways to search, each tuned by sliders."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.html import format_html

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.results.trying import Trial
from apps.retrieval.models import Index
from apps.retrieval.search.words import describe_outdated_words, find_words
from apps.retrieval.strategies import STRATEGIES
from benchbench.access import AnyUser, visible
from benchbench.ir.planning.configuration import DEFAULTS
from benchbench.ir.planning.lexical import BM25, Lexical, LexicalError
from benchbench.models import leave_out_archived
from benchbench.site.pages import PageForm

RERANKED = "-reranked"
WEIGHTED = "weighted"
MODES = {"dense": "dense", "sparse": "lexical", "hybrid": "hybrid (RRF)", WEIGHTED: "hybrid (weighted sum)"}
WAYS = MODES | {f"{mode}{RERANKED}": f"{name}, reranked by late interaction" for mode, name in MODES.items()}
MAX_LENGTH = 2_000
MAX_TOP_K = 1_000
SCORE = ("k1", "b")  # the options of BM25 that have sliders
VALUES = {"k1": 1.5, "b": 0.75, "rrf_k": DEFAULTS["rrf_k"], "dense": 0.5}  # of sliders


class Slider(forms.NumberInput):
    """A range with its value, which a script keeps up to date."""

    input_type = "range"

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        return format_html("{}<output>{}</output>", super().render(name, value, attrs, renderer), value)


def build_sliders() -> dict[str, forms.Field]:
    def build(label: str, maximum: float, step: float) -> forms.FloatField:
        widget = Slider({"step": f"{step:g}", "class": "bb-slider"})
        return forms.FloatField(label=label, min_value=0, max_value=maximum, widget=widget)

    return {
        "k1": build("BM25 k1", 5, 0.05),
        "b": build("BM25 b", 1, 0.05),
        "rrf_k": forms.IntegerField(label="RRF k", min_value=1, max_value=200, widget=Slider({"class": "bb-slider"})),
        "dense": build("Weight of dense", 1, 0.05),
    }


@dataclass(frozen=True, slots=True)
class Side:
    """An index, a way to search it, the setting of its lexical search, and the values of its sliders."""

    index: Index | None
    way: str
    lexical: str
    values: dict[str, float] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        return self.way.removesuffix(RERANKED)

    @property
    def title(self) -> str:
        lexical = f", {self.lexical}" if self.mode != "dense" and self.lexical != "bm25" else ""
        fusion = ""
        if self.mode == WEIGHTED:
            fusion = f", dense {self.values.get('dense')}"
        elif self.mode == "hybrid" and self.values.get("rrf_k") != VALUES["rrf_k"]:
            fusion = f", k {self.values.get('rrf_k')}"
        return f"{self.index}, {WAYS[self.way]}{fusion}{lexical}"

    def build_trial(self, text: str, top_k: int) -> Trial:
        """Return the trial of a valid side. Values that make no difference to it keep their defaults."""
        assert self.index is not None
        dense = self.values["dense"]
        return Trial(
            text=text,
            index_id=str(self.index.pk),
            mode="hybrid" if self.mode == WEIGHTED else self.mode,
            use_reranker=self.way.endswith(RERANKED),
            top_k=top_k,
            lexical="bm25" if self.mode == "dense" else self.lexical,
            rrf_k=int(self.values["rrf_k"]) if self.mode == "hybrid" else DEFAULTS["rrf_k"],
            weights=(dense, round(1 - dense, 2)) if self.mode == WEIGHTED else None,
        )


class TrialForm(PageForm):
    """A query, and one or two ways to search for it. The query string of the page has the values."""

    sections = (
        ("", "", ("q", "index", "way")),
        ("Search", "", ("top_k", "dataset", "lexical", *VALUES)),
        ("Compare with", "", ("other_index", "other_way", "other_lexical", *(f"other_{name}" for name in VALUES))),
    )

    q = forms.CharField(label="Query", max_length=MAX_LENGTH)
    index = forms.ModelChoiceField(Index.objects.none(), empty_label=None)
    way = forms.ChoiceField(label="Search", choices=list(WAYS.items()))
    lexical = forms.CharField(
        label="Lexical search",
        max_length=MAX_LENGTH,
        help_text="bm25 or fts. Other analyzers too, once a benchmark has indexed their words.",
    )
    other_index = forms.ModelChoiceField(Index.objects.none(), label="Index", required=False, empty_label="the same")
    other_way = forms.ChoiceField(label="Search", required=False, choices=[("", "none"), *WAYS.items()])
    other_lexical = forms.CharField(
        label="Lexical search", max_length=MAX_LENGTH, required=False, help_text="Empty: the same."
    )
    top_k = forms.IntegerField(min_value=1, max_value=MAX_TOP_K, help_text="Chunks of each list, as in a benchmark.")
    dataset = forms.ModelChoiceField(
        Dataset.objects.none(), required=False, empty_label="none", help_text="For grades, and to judge."
    )

    def __init__(self, *args: Any, collection: Collection, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        for prefix in ("", "other_"):
            fields[f"{prefix}index"].queryset = list_indexes(collection, self.user)
            fields |= {f"{prefix}{name}": slider for name, slider in build_sliders().items()}
        fields["dataset"].queryset = leave_out_archived(visible(Dataset.objects.order_by("name"), self.user))

    @property
    def has_folded_errors(self) -> bool:
        """Return whether a field below the first section has an error, so that its fold is open."""
        return bool(set(self.errors) - {*self.sections[0][2]})

    def clean_lexical(self) -> str:
        return self._read_lexical("lexical")

    def clean_other_lexical(self) -> str:
        return self._read_lexical("other_lexical") or self.cleaned_data.get("lexical", "")

    def _read_lexical(self, name: str) -> str:
        """Return the canonical text of a setting; "" for an empty one."""
        text = self.cleaned_data[name]
        try:
            setting = Lexical.parse(text) if text else None
        except LexicalError as error:
            raise forms.ValidationError(error.message) from error
        if setting and str(setting) != setting.words:
            raise forms.ValidationError(f"Sliders set {' and '.join(SCORE)}: write {setting.words}.")
        return str(setting or "")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for prefix, side in zip(("", "other_"), self._list_sides(), strict=False):
            name = f"{prefix}way"
            if side.index and side.mode != "sparse" and not side.index.has_vectors:
                self.add_error(
                    name, f"The index “{side.index}” has no vectors: choose lexical search or another index."
                )
            elif side.index and side.mode != "dense" and (problem := _find_problem(side)):
                self.add_error(f"{prefix}lexical", problem)
        return data

    def _list_sides(self) -> Iterator[Side]:
        data = self.cleaned_data
        for prefix in ("", "other_"):
            index = data.get(f"{prefix}index") or data.get("index")
            if way := data.get(f"{prefix}way"):
                values = {name: data[f"{prefix}{name}"] for name in VALUES if f"{prefix}{name}" in data}
                yield Side(index, way, tune(data.get(f"{prefix}lexical", ""), values), values)

    def list_trials(self) -> list[tuple[Side, Trial]]:
        """Return each side of a valid form with its trial."""
        text, top_k = self.cleaned_data["q"], self.cleaned_data["top_k"]
        return [(side, side.build_trial(text, top_k)) for side in self._list_sides() if side.index]


def tune(lexical: str, values: dict[str, float]) -> str:
    """Return a setting of BM25 with the values of `k1` and `b`; another one as it is."""
    if not lexical or (setting := Lexical.parse(lexical)).engine != BM25:
        return lexical
    return str(replace(setting, options=tuple((name, values.get(name, value)) for name, value in setting.options)))


def complete_sliders(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the query string with those of sliders that it lacks: `k1` and `b` from the settings."""
    complete = {f"{prefix}{name}": value for prefix in ("", "other_") for name, value in VALUES.items()} | values
    for prefix in ("", "other_"):
        text = values.get(f"{prefix}lexical") or values["lexical"]
        try:
            setting = Lexical.parse(text)
        except LexicalError:
            continue
        if setting.engine != BM25 or any(f"{prefix}{name}" in values for name in SCORE):
            continue
        complete |= {f"{prefix}{name}": setting[name] for name in SCORE}
        if values.get(f"{prefix}lexical"):
            complete[f"{prefix}lexical"] = setting.words
    return complete


def _find_problem(side: Side) -> str:
    """Return why the words of a side cannot be searched, as a sentence; "" if they can."""
    assert side.index is not None
    assert side.index.chunk_set is not None
    setting = Lexical.parse(side.lexical or "bm25")
    if setting.engine == BM25 and side.index.lexical_index_id is None:
        return f"The index “{side.index}” has no BM25 index: choose dense search or another index."
    if setting.is_built_by_run and find_words(side.index.chunk_set, setting) is None:
        return f"The index “{side.index}” has no words of {setting.words}: a benchmark with it indexes them."
    return describe_outdated_words(side.index, setting)


def list_indexes(collection: Collection, user: AnyUser) -> QuerySet[Index]:
    """Return the indexes that a query can be tried on: those that are ready and ask no language model."""
    asking = [name for name, strategy in STRATEGIES.items() if strategy.asks]
    ready = Index.objects.filter(collection=collection, status=Index.Status.READY).exclude(strategy__in=asking)
    return visible(ready.order_by("-created_at"), user)
