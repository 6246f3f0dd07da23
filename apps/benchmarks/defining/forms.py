"""Forms of a new benchmark: its matrix in a search engineer's words, its measures, and an experiment file."""

import re
from collections.abc import Callable
from typing import Any

from django import forms

from apps.benchmarks.defining.choosing import list_ready_indexes
from apps.benchmarks.defining.creating import BenchmarkOptions, require_published
from apps.mappings.models import Mapping
from benchbench.access import visible
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.axes import SWITCH, Axis, parse_integers
from benchbench.ir.planning.configuration import SEARCH_MODES
from benchbench.ir.planning.labels import AXIS_WORDS, METHODS, RERANKING, REWRITING, SEARCH
from benchbench.ir.planning.matrix import BY_KEY, KEYS, MatrixError
from benchbench.reading.kinds import split_calls
from benchbench.site.pages import PageForm, SizedFileField


class ListField(forms.CharField):
    """Comma-separated values. `read` parses the text, or raises ValueError with the wrong part as its text."""

    def __init__(self, read: Callable[[str], list[Any]], expects: str, **kwargs: Any) -> None:
        self.read = read
        self.expects = expects
        super().__init__(required=False, **kwargs)

    def clean(self, value: Any) -> list[Any]:
        try:
            return self.read(str(value or ""))
        except ValueError as error:
            raise forms.ValidationError(f"“{error}” is not {self.expects}. Separate several with commas.") from None


class SwitchField(forms.ChoiceField):
    """Off, on, or both, as a list of booleans."""

    def __init__(self, read: Callable[[str], list[Any]], **kwargs: Any) -> None:
        self.read = read
        choices = [("off", "off"), ("on", "on"), ("both", "both: with and without")]
        super().__init__(choices=choices, initial="off", **kwargs)

    def clean(self, value: Any) -> list[Any]:
        return self.read(super().clean(value))


def build_field(axis: Axis) -> forms.Field:
    """Return the form field for the values of an axis: checkboxes, a switch, or comma-separated text."""
    words = AXIS_WORDS[axis.field]
    options: dict[str, Any] = {"label": words.label, "help_text": words.help}
    if axis.kind is SWITCH:
        return SwitchField(axis.read, **options)
    if words.choices:
        choices = list(words.choices.items())
        return forms.MultipleChoiceField(choices=choices, initial=[axis.default], required=False, **options)
    return ListField(axis.read, axis.reader.expects, initial=axis.default_text, **options)


MatrixFields: Any = type("MatrixFields", (forms.Form,), {key: build_field(axis) for key, axis in BY_KEY.items()})


def list_section_keys(section: str) -> tuple[str, ...]:
    return tuple(key for key, axis in BY_KEY.items() if AXIS_WORDS[axis.field].section == section)


class MeasuresForm(PageForm):
    measures = ListField(
        split_calls,
        "a measure",
        help_text="Separated by commas: “Success@5, ERR@10, RBP(p=0.8), Bpref”.",
    )


class ManifestForm(PageForm):
    content_field = "file"

    file = SizedFileField(
        label="Experiment file",
        accept=".yaml,.yml,application/yaml",
        limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
        remedy="For larger files, use run_benchmark --experiment FILE.",
        help_text="The button Experiment on a benchmark's page downloads it.",
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Empty: the name of the first benchmark, and “again”.",
    )


class BenchmarkForm(PageForm, MatrixFields):
    mapping = forms.ModelChoiceField(
        Mapping.objects.none(),
        empty_label="Choose a resolved mapping",
        help_text="Sets the queries and the documents. Only resolved mappings are listed.",
    )
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "Does hybrid search pay off?"}),
        help_text="For example, the question that the benchmark answers.",
    )
    description = forms.CharField(required=False, widget=forms.Textarea({"rows": 2}))
    indexes = forms.MultipleChoiceField(
        required=False,
        help_text="Select several to compare them. None selected: the newest ready index.",
    )
    k_values_for_metrics = ListField(
        parse_integers,
        "a whole number",
        initial="5, 10, 20",
        label="Measured at k",
        help_text="nDCG, P and R at each k; RR and AP once.",
    )
    measures = ListField(
        split_calls,
        "a measure",
        label="Further measures",
        help_text="Built-in measures or those of ir_measures: “Success@5, ERR@10, RBP(p=0.8)”. You can add more later.",
    )
    primary_k = forms.IntegerField(
        initial=10,
        min_value=1,
        label="Primary k",
        help_text="The leaderboard is ordered by nDCG at this k.",
    )
    execution = forms.ChoiceField(
        choices=[
            ("shared", "shared: common stages run once; fast"),
            ("isolated", "isolated: query by query, for accurate times; slow"),
        ],
        help_text="Both give the same rankings and values; only the measured times differ.",
    )
    unresolved = forms.ChoiceField(
        choices=[("count", "count them as not found"), ("drop", "leave them out")],
        label="Unresolved judgments",
        help_text="Leaving them out raises the values of every run; the page shows their number.",
    )
    empty_queries = forms.ChoiceField(
        choices=[("zero", "count them as 0"), ("skip", "leave them out of the means")],
        label="Queries without a relevant judgment",
        help_text="No search can answer them. Leave them out to keep them from lowering the means.",
    )
    allow_missing = forms.BooleanField(
        required=False,
        label="Allow missing modules",
        help_text="Run module queries even if the collection lacks expected modules; these count as not found.",
    )
    seed = forms.IntegerField(initial=42, help_text="Seed of all random choices.")

    sections = (
        ("Benchmark", "", ("mapping", "name", "description")),
        (
            SEARCH,
            "Every combination of values is one run; values that a mode does not use add no runs.",
            list_section_keys(SEARCH),
        ),
        (METHODS, "", list_section_keys(METHODS)),
        (RERANKING, "", list_section_keys(RERANKING)),
        (
            REWRITING,
            "Queries as asked, or as rewritten by a language model.",
            list_section_keys(REWRITING),
        ),
        (
            "Measures",
            "",
            ("k_values_for_metrics", "primary_k", "measures", "unresolved", "empty_queries", "allow_missing"),
        ),
        ("Execution", "", ("execution", "seed")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        modes = self.fields["search_modes"]
        modes.required, modes.initial = True, list(SEARCH_MODES)
        mappings = visible(Mapping.objects.filter(collection__kind="documents"), self.user)
        field: Any = self.fields["mapping"]
        resolved = mappings.exclude(status=Mapping.Status.PENDING)
        field.queryset = resolved.select_related("dataset", "collection").order_by("name")
        indexes: Any = self.fields["indexes"]
        indexes.choices = [(name, name) for name in self._index_names()]

    def clean_rerankers(self) -> list[Any]:
        try:
            require_published(self.cleaned_data)
        except MatrixError as error:
            raise forms.ValidationError(error.message.removeprefix("rerankers: ")) from None
        return self.cleaned_data["rerankers"]

    def _index_names(self) -> list[str]:
        """Return the names of the ready indexes of the chosen mapping's collection that the user sees."""
        chosen = self["mapping"].value()
        try:
            mapping = self.fields["mapping"].clean(chosen) if chosen else None
        except forms.ValidationError:
            mapping = None
        if mapping is None:
            return []
        return sorted(set(list_ready_indexes(mapping, self.user).values_list("name", flat=True)))

    def present(self, error: BenchbenchError) -> None:
        """Show an error about the matrix at its field, in the form's words: without the key, and `none` for null."""
        error.message = re.sub(r"\bnull\b", "none", error.message.removeprefix(f"{error.field}: "))
        super().present(error)

    def build_matrix(self) -> dict[str, Any]:
        """Return the matrix that the valid fields describe; empty fields mean the default."""
        values = self.cleaned_data
        return {name: values[name] for name in KEYS if values.get(name)}

    def build_options(self) -> BenchmarkOptions:
        """Return the options of the benchmark that the valid fields describe."""
        return BenchmarkOptions.from_values(self.cleaned_data, matrix=self.build_matrix())
