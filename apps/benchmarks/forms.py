"""Forms of a new benchmark: its matrix in a search engineer's words, its measures, and an experiment file."""

import re
from collections.abc import Mapping as MappingType
from dataclasses import asdict
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import escape, format_html

from apps.benchmarks.fields import EMPTY_QUERIES, UNRESOLVED, WEIGHTINGS, ExcludeSelfField, ListField, SwitchField
from apps.collections.models import Collection
from apps.engines.declarations import list_engines, list_refused
from apps.execution.defining.choosing import list_ready_indexes
from apps.execution.defining.creating import BenchmarkOptions, require_published
from apps.mappings.models import Mapping
from apps.operations.models import Priority
from apps.records.measuring.measures import list_measures
from apps.records.models import Benchmark
from apps.retrieval.llms.servers import load_servers
from benchbench.access import AnyUser, visible
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.axes.axis import EXECUTION, METHODS, RERANKING, REWRITING, SEARCH, Axis
from benchbench.ir.planning.axes.kinds import SWITCH, parse_integers
from benchbench.ir.planning.configuration import ENGINE_MODES, INDEX_MODES
from benchbench.ir.planning.matrix import KEYS, MatrixError
from benchbench.models import MAX_TAGS, TAG_LENGTH, leave_out_archived
from benchbench.reading.calls import split_calls
from benchbench.site.lengths import FewTextsField
from benchbench.site.pages import Groups, PageForm, SizedFileField


def build_field(axis: Axis) -> forms.Field:
    """Return the form field for the values of an axis: checkboxes, a switch, or comma-separated text."""
    options: dict[str, Any] = {"label": axis.label, "help_text": axis.help}
    if axis.kind is SWITCH:
        return SwitchField(axis.kind.read, **options)
    if axis.choices:
        choices = list(axis.choices.items())
        return forms.MultipleChoiceField(choices=choices, initial=[axis.default], required=False, **options)
    return ListField(axis.kind.read, axis.kind.reader.expects, initial=axis.default_text, **options)


def build_initial(matrix: MappingType[str, Any]) -> dict[str, Any]:
    """Return the values of the form's fields that describe a matrix; keys that it lacks keep the form's own."""
    chosen = {"indexes", *(key for key, axis in BY_KEY.items() if axis.choices)}
    initial: dict[str, Any] = {}
    for key, values in matrix.items():
        if key in chosen:
            initial[key] = [value for value in values if value is not None]
        elif key in BY_KEY:
            initial[key] = "" if list(values) == [None] else BY_KEY[key].write(values)
        else:
            initial[key] = values if key == "primary_k" else ", ".join(map(str, values))
    return initial


MatrixFields: Any = type("MatrixFields", (forms.Form,), {key: build_field(axis) for key, axis in BY_KEY.items()})


def list_section_keys(section: str) -> tuple[str, ...]:
    return tuple(key for key, axis in BY_KEY.items() if axis.section == section)


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
        remedy="For larger files, use run_experiment FILE.",
        help_text="The button Experiment on a benchmark's page downloads it.",
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Empty: the name of the first benchmark, and “again”.",
    )


def list_mappings(user: AnyUser, *, asks_engines: bool = False) -> QuerySet[Mapping]:
    """Return the resolved mappings that `user` sees.

    Those onto ids alone only if the site declares search engines, or a cloned benchmark `asks_engines` that it lacks.
    """
    mappings = visible(Mapping.objects.all(), user)
    if not (asks_engines or list_engines()):
        mappings = mappings.filter(collection__kind=Collection.Kind.DOCUMENTS)
    resolved = mappings.exclude(status=Mapping.Status.PENDING)
    return resolved.select_related("dataset", "collection", "dataset_version").order_by("name")


def build_clone_initial(benchmark: Benchmark) -> dict[str, Any]:
    """Return the values of the form's fields that describe a benchmark."""
    options = asdict(BenchmarkOptions.from_benchmark(benchmark))
    options["tags"] = ",".join(options["tags"])
    usual = list_measures(benchmark.k_values, (), benchmark.dataset_version)
    measures = ", ".join(name for name in benchmark.measures if name not in usual)
    return options | build_initial(benchmark.matrix) | {"mapping": str(benchmark.mapping_id), "measures": measures}


class MappingField(forms.ModelChoiceField):
    """Choice of a mapping by its dataset and its collection; by its own name too if that says more."""

    def label_from_instance(self, obj: Any) -> str:
        both = f"{obj.dataset} on {obj.collection}"
        return both if obj.name == both else f"{both} ({obj.name})"


class BenchmarkForm(PageForm, MatrixFields):
    mapping = MappingField(
        Mapping.objects.none(),
        label="Dataset and collection",
        empty_label="Choose queries and documents",
        help_text="The queries to ask and the documents to search. Only resolved mappings are listed.",
    )
    name = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "Does hybrid search pay off?"}),
        help_text="For example, the question that the benchmark answers.",
    )
    description = forms.CharField(required=False, widget=forms.Textarea({"rows": 2}))
    tags = FewTextsField(
        forms.CharField(max_length=TAG_LENGTH),
        required=False,
        max_length=MAX_TAGS,
        help_text="Words to filter by, separated by commas, such as nightly.",
    )
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
        choices=UNRESOLVED,
        label="Unresolved judgments",
        help_text="Leaving them out raises the values of every run; the page shows their number.",
    )
    empty_queries = forms.ChoiceField(
        choices=EMPTY_QUERIES,
        label="Queries without a relevant judgment",
        help_text="No search can answer them. Leave them out to keep them from lowering the means.",
    )
    weighting = forms.ChoiceField(required=False, choices=WEIGHTINGS, label="Weight of a query in the means")
    identical_texts = forms.TypedChoiceField(
        required=False,
        empty_value="different",
        choices=[("different", "judge each by itself"), ("judged", "give them the grade of the judged one")],
        label="Documents with identical texts",
        help_text="Of several in a ranking, only the first gains; the ideal ranking has the text once.",
    )
    exclude_self = ExcludeSelfField()
    allow_missing = forms.BooleanField(
        required=False,
        label="Allow missing modules",
        help_text="Run module queries even if the collection lacks expected modules; these count as not found.",
    )
    runs_per_query = forms.IntegerField(
        initial=1,
        required=False,
        label="Repetitions",
        help_text="How often isolated execution searches each query.",
    )
    seed = forms.IntegerField(initial=42, help_text="Seed of all random choices.")
    priority = forms.ChoiceField(required=False, initial=Priority.NORMAL, help_text="Workers take a higher one first.")

    sections = (
        ("Benchmark", "", ("mapping", "name", "description", "tags")),
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
            (
                *("k_values_for_metrics", "primary_k", "measures"),
                *("unresolved", "empty_queries", "weighting", "identical_texts", "exclude_self", "allow_missing"),
            ),
        ),
        ("Execution", "", ("execution", "runs_per_query", *list_section_keys(EXECUTION), "seed", "priority")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        modes = self.fields["search_modes"]
        modes.required, modes.initial = True, list(INDEX_MODES)
        self._offer_engines(modes)
        priority: Any = self.fields["priority"]
        priority.choices = [choice for choice in Priority.choices if self.user.is_superuser or choice[0] != "high"]
        field: Any = self.fields["mapping"]
        chosen = [self["mapping"].value()]
        mappings = list_mappings(self.user, asks_engines=bool(self["engines"].value()))
        field.queryset = leave_out_archived(mappings, path="dataset__tags", but=chosen)
        indexes: Any = self.fields["indexes"]
        indexes.choices = [(name, name) for name in self._index_names()]

    def groups(self) -> Groups:
        """Return the groups of fields, without rewriting where no language model can."""
        has_llm = load_servers() or self["llms"].value()
        return [group for group in super().groups() if has_llm or group[0] != REWRITING]

    def _offer_engines(self, modes: Any) -> None:
        """List the search engines that the site declares; without any, offer none but those of a cloned benchmark."""
        if aliases := [engine.alias for engine in list_engines()]:
            self.fields["engines"].help_text += f" Declared: {', '.join(aliases)}."
        if refused := list_refused():
            words = f" Refused, because their entries are wrong: {', '.join(refused)}."
            self.fields["engines"].help_text += escape(words)
        if self.user.has_perm("operations.view_operation"):
            page = format_html('<a class="text-link" href="{}">Engines</a>', reverse("admin:engines"))
            words = format_html(" {} shows how search servers of your own are compared.", page)
            modes.help_text = format_html("{}{}", modes.help_text, words)
        if aliases or self["engines"].value():
            return
        modes.choices = [(mode, words) for mode, words in modes.choices if mode not in ENGINE_MODES]
        self.fields["engines"].widget = forms.HiddenInput()

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
