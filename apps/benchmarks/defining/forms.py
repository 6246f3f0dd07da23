"""Forms of a new benchmark: its matrix in a search engineer's words, its measures, and an experiment file."""

import re
from collections.abc import Callable
from typing import Any

from django import forms

from apps.benchmarks.defining.choosing import ready_indexes
from apps.benchmarks.defining.creating import BenchmarkOptions, require_published
from apps.mappings.models import Mapping
from benchbench.access import visible
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.axes import SWITCH, Axis, whole_numbers
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
            raise forms.ValidationError(f"“{error}” is not {self.expects}. Put commas between several.") from None


class SwitchField(forms.ChoiceField):
    """Off, on, or both, as a list of booleans."""

    def __init__(self, read: Callable[[str], list[Any]], **kwargs: Any) -> None:
        self.read = read
        choices = [("off", "off"), ("on", "on"), ("both", "both: with and without")]
        super().__init__(choices=choices, initial="off", **kwargs)

    def clean(self, value: Any) -> list[Any]:
        return self.read(super().clean(value))


def field_of(axis: Axis) -> forms.Field:
    """Return the form field for the values of an axis: checkboxes, a switch, or comma-separated text."""
    words = AXIS_WORDS[axis.field]
    options: dict[str, Any] = {"label": words.label, "help_text": words.help}
    if axis.kind is SWITCH:
        return SwitchField(axis.read, **options)
    if words.choices:
        choices = list(words.choices.items())
        return forms.MultipleChoiceField(choices=choices, initial=[axis.default], required=False, **options)
    return ListField(axis.read, axis.reader.expects, initial=axis.default_text, **options)


MatrixFields: Any = type("MatrixFields", (forms.Form,), {key: field_of(axis) for key, axis in BY_KEY.items()})


def keys_of_section(section: str) -> tuple[str, ...]:
    return tuple(key for key, axis in BY_KEY.items() if AXIS_WORDS[axis.field].section == section)


class MeasuresForm(PageForm):
    measures = ListField(
        split_calls,
        "a measure",
        help_text="With commas between them: “Success@5, ERR@10, RBP(p=0.8), Bpref”.",
    )


class ManifestForm(PageForm):
    content_field = "file"

    file = SizedFileField(
        label="Experiment file",
        accept=".yaml,.yml,application/yaml",
        limit="BENCHMARK_DATASET_MAX_UPLOAD_BYTES",
        remedy="Larger ones: run_benchmark --experiment FILE.",
        help_text="The file that the button Experiment on a benchmark's page downloads.",
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
        help_text="Which queries are asked of which documents. Only resolved mappings are offered.",
    )
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "Does hybrid search pay?"}),
        help_text="The question that you ask is a good name.",
    )
    description = forms.CharField(required=False, widget=forms.Textarea({"rows": 2}))
    indexes = forms.MultipleChoiceField(
        required=False,
        help_text="Tick several to compare them. None ticked: the one that became ready last.",
    )
    k_values_for_metrics = ListField(
        whole_numbers,
        "a whole number",
        initial="5, 10, 20",
        label="Measured at k",
        help_text="nDCG, P and R at each k; RR and AP once.",
    )
    measures = ListField(
        split_calls,
        "a measure",
        label="Further measures",
        help_text="“Success@5, ERR@10, RBP(p=0.8)”: ours, and those of ir_measures. They can be added later too.",
    )
    primary_k = forms.IntegerField(
        initial=10,
        min_value=1,
        label="Primary k",
        help_text="nDCG at this k decides the order of the leaderboard.",
    )
    execution = forms.ChoiceField(
        choices=[
            ("shared", "shared: what runs have in common is done once; quick"),
            ("isolated", "isolated: query by query, for honest times; slow"),
        ],
        help_text="Rankings and values are the same either way; only the times differ in what they mean.",
    )
    unresolved = forms.ChoiceField(
        choices=[("count", "count them as not found"), ("drop", "leave them out")],
        label="Unresolved judgments",
        help_text="Leaving them out flatters every run; the page says how many there are.",
    )
    empty_queries = forms.ChoiceField(
        choices=[("zero", "count them as 0"), ("skip", "leave them out of the means")],
        label="Queries without a relevant judgment",
        help_text="No search can return anything right for such a query. Left out, they lower no mean.",
    )
    allow_missing = forms.BooleanField(
        required=False,
        label="Allow missing modules",
        help_text="Run module queries although the collection lacks modules that they expect; those are not found.",
    )
    seed = forms.IntegerField(initial=42, help_text="Of everything random.")

    sections = (
        ("What is measured", "", ("mapping", "name", "description")),
        (
            SEARCH,
            "Every combination is one run. A value that does not touch a mode does not multiply it.",
            keys_of_section(SEARCH),
        ),
        (METHODS, "", keys_of_section(METHODS)),
        (RERANKING, "", keys_of_section(RERANKING)),
        (
            REWRITING,
            "Queries as they were asked, or as a language model puts them.",
            keys_of_section(REWRITING),
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
        return sorted(set(ready_indexes(mapping, self.user).values_list("name", flat=True)))

    def present(self, error: BenchbenchError) -> None:
        """Show an error about the matrix at its field, in the form's words: without the key, and `none` for null."""
        error.message = re.sub(r"\bnull\b", "none", error.message.removeprefix(f"{error.field}: "))
        super().present(error)

    def matrix(self) -> dict[str, Any]:
        """Return the matrix that the valid fields describe; empty fields mean the default."""
        values = self.cleaned_data
        return {name: values[name] for name in KEYS if values.get(name)}

    def options(self) -> BenchmarkOptions:
        """Return the options of the benchmark that the valid fields describe."""
        return BenchmarkOptions.from_values(self.cleaned_data, matrix=self.matrix())
