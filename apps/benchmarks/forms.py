"""What the admin asks for when a benchmark is made: the matrix as a search engineer would say it."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from apps.benchmarks.creating import ready_indexes
from apps.benchmarks.list_fields import ListField, pair, share_or_none
from apps.benchmarks.measures import names_in
from apps.mappings.models import Mapping
from benchbench.access import visible
from benchbench.ir.ann import split_settings
from benchbench.pages import PageForm, SizedFileField

MATRIX_FIELDS = (
    "indexes",
    "search_modes",
    "top_k_values",
    "candidates",
    "ann",
    "lexical",
    "fusion",
    "weights",
    "rrf_k_values",
    "score_thresholds",
    "rerankers",
    "rerank_depths",
    "k_values_for_metrics",
    "primary_k",
)
RERANKING = {"off": [False], "on": [True], "both": [False, True]}


class MeasuresForm(PageForm):
    measures = ListField(
        str,
        "a measure",
        split=names_in,
        help_text="With commas between them: “Success@5, ERR@10, RBP(p=0.8), Bpref”.",
    )


class ManifestForm(PageForm):
    content_field = "file"

    file = SizedFileField(
        label="Manifest",
        accept=".json,application/json",
        limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
        remedy="Larger ones: run_benchmark --manifest FILE.",
        help_text="The file that a benchmark's page gives by the button Manifest.",
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Empty: that of the first benchmark, and “again”.",
    )


class BenchmarkForm(PageForm):
    mapping = forms.ModelChoiceField(
        Mapping.objects.none(),
        widget=UnfoldAdminSelectWidget(),
        empty_label="Choose a resolved mapping",
        help_text="Which queries are asked of which documents. Only resolved mappings are offered.",
    )
    name = forms.CharField(
        max_length=200,
        widget=UnfoldAdminTextInputWidget({"placeholder": "Does hybrid search pay?"}),
        help_text="The question that you ask is a good name.",
    )
    description = forms.CharField(required=False, widget=UnfoldAdminTextareaWidget({"rows": 2}))
    indexes = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text="Tick several to compare them. None ticked: the one that became ready last.",
    )
    search_modes = forms.MultipleChoiceField(
        choices=[
            ("dense", "dense: by the vectors of an encoder"),
            ("sparse", "lexical: by words"),
            ("hybrid", "hybrid: both, fused"),
        ],
        initial=["dense", "sparse", "hybrid"],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        label="Modes",
    )
    top_k_values = ListField(
        int,
        "a whole number",
        initial="100",
        label="Top k",
        help_text="How many chunks a search keeps, at least the greatest k measured. “50, 100” makes two runs of each.",
    )
    candidates = ListField(
        int,
        "a whole number",
        label="Candidates",
        help_text="How many chunks the first stage finds before fusion and reranking. Empty: as many as top k.",
    )
    ann = ListField(
        str,
        "a setting",
        split=split_settings,
        initial="exact",
        label="Dense search",
        help_text="“exact, hnsw(ef_search=100), ivfflat(probes=10)”: exactly, or by an index of pgvector, which is "
        "then held against that. Further options: m, ef_construction, lists, iterative, storage (halfvec, binary).",
    )
    lexical = forms.MultipleChoiceField(
        required=False,
        choices=[("bm25", "BM25"), ("fts", "PostgreSQL full text")],
        initial=["bm25"],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        label="Lexical search",
    )
    fusion = forms.MultipleChoiceField(
        required=False,
        choices=[("rrf", "by rank: RRF"), ("weighted", "by score: weighted sum of normalised scores")],
        initial=["rrf"],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        label="Fusion",
    )
    weights = ListField(
        pair,
        "a pair of numbers such as 0.7:0.3",
        label="Weights",
        help_text="Of dense and lexical in weighted fusion: “0.5:0.5, 0.7:0.3”. Empty: alike.",
    )
    rrf_k_values = ListField(
        int,
        "a whole number",
        initial="60",
        label="RRF k",
        help_text="Hybrid only: reciprocal rank fusion sums 1 / (k + rank). A small k trusts the first ranks more.",
    )
    score_thresholds = ListField(
        share_or_none,
        "a number or “none”",
        initial="none",
        label="Score thresholds",
        help_text="“none, 0.5”: all results, and only those that score at least 0.5 on their mode's scale of 0 to 1.",
    )
    use_reranker = forms.ChoiceField(
        choices=[("off", "off"), ("on", "on"), ("both", "both: with and without")],
        initial="off",
        widget=UnfoldAdminSelectWidget(),
        label="Reranking",
        help_text="A second look at the first results: slower, often better.",
    )
    rerankers = ListField(
        str,
        "a name",
        label="Reranker",
        help_text=(
            "Empty: late-interaction, by the tokens of the index's own encoder. "
            "Or a sentence-transformers CrossEncoder, by name or local path."
        ),
    )
    rerank_depths = ListField(
        int, "a whole number", label="Rerank depth", help_text="How many chunks it reads a query. Empty: top k."
    )
    k_values_for_metrics = ListField(
        int,
        "a whole number",
        initial="5, 10, 20",
        label="Measured at k",
        help_text="nDCG, P and R at each; RR and AP besides.",
    )
    measures = ListField(
        str,
        "a measure",
        split=names_in,
        label="Further measures",
        help_text="“Success@5, ERR@10, RBP(p=0.8)”: ours, and those of ir_measures. They can be added later too.",
    )
    primary_k = forms.IntegerField(
        initial=10,
        min_value=1,
        widget=UnfoldAdminIntegerFieldWidget(),
        label="Primary k",
        help_text="nDCG at this k decides the order of the leaderboard.",
    )
    execution = forms.ChoiceField(
        choices=[
            ("shared", "shared: what runs have in common is done once; quick"),
            ("isolated", "isolated: query by query, for honest times; slow"),
        ],
        widget=UnfoldAdminSelectWidget(),
        help_text="Rankings and values are the same either way; only the times differ in what they mean.",
    )
    unresolved = forms.ChoiceField(
        choices=[("count", "count them as not found"), ("drop", "leave them out")],
        widget=UnfoldAdminSelectWidget(),
        label="Unresolved judgments",
        help_text="Leaving them out flatters every run; the page says how many there are.",
    )
    empty_queries = forms.ChoiceField(
        choices=[("zero", "count them as 0"), ("skip", "leave them out of the means")],
        widget=UnfoldAdminSelectWidget(),
        label="Queries without a relevant judgment",
        help_text="Nothing that a search returns for such a query is right. Left out, they lower no mean.",
    )
    allow_missing = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        label="Allow missing modules",
        help_text="Of module queries: run although the collection lacks modules that they expect, which are not found.",
    )
    seed = forms.IntegerField(initial=42, widget=UnfoldAdminIntegerFieldWidget(), help_text="Of everything random.")

    sections = (
        ("What is measured", "", ("mapping", "name", "description")),
        (
            "Search",
            "Every combination is one run. A value that does not touch a mode does not multiply it.",
            ("indexes", "search_modes", "top_k_values", "score_thresholds", "candidates"),
        ),
        ("Dense, lexical, hybrid", "", ("ann", "lexical", "fusion", "rrf_k_values", "weights")),
        ("Reranking", "", ("use_reranker", "rerankers", "rerank_depths")),
        (
            "Measures",
            "",
            ("k_values_for_metrics", "primary_k", "measures", "unresolved", "empty_queries", "allow_missing"),
        ),
        ("Execution", "", ("execution", "seed")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mappings = visible(Mapping.objects.filter(collection__kind="documents"), self.user)
        field: Any = self.fields["mapping"]
        resolved = mappings.exclude(status=Mapping.Status.PENDING)
        field.queryset = resolved.select_related("dataset", "collection").order_by("name")
        indexes: Any = self.fields["indexes"]
        indexes.choices = [(name, name) for name in self._index_names()]

    def _index_names(self) -> list[str]:
        """Return the names of the ready indexes of the chosen mapping's collection that the user sees."""
        chosen = self["mapping"].value()
        try:
            mapping = self.fields["mapping"].clean(chosen) if chosen else None
        except forms.ValidationError:
            mapping = None
        if mapping is None:
            return []
        return sorted(set(ready_indexes(mapping, self.user).values_list("name", flat=True)))

    def matrix(self) -> dict[str, Any]:
        """Return the matrix that the valid fields describe; what was left empty has its default."""
        values = self.cleaned_data
        matrix = {name: values[name] for name in MATRIX_FIELDS if values.get(name)}
        if values.get("use_reranker"):
            matrix["use_reranker"] = RERANKING[values["use_reranker"]]
        if values.get("use_reranker") == "off":
            matrix.pop("rerankers", None)
            matrix.pop("rerank_depths", None)
        return matrix

    def options(self) -> dict[str, Any]:
        """Return what else a benchmark is made with."""
        names = ("name", "description", "execution", "seed", "measures", "allow_missing", "unresolved", "empty_queries")
        return {name: self.cleaned_data[name] for name in names}
