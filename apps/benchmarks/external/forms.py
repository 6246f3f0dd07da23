"""The form of an external run."""

from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet

from apps.benchmarks.defining.list_fields import ListField
from apps.benchmarks.measuring.measures import names_in
from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.datasets.forms import DETECT
from apps.datasets.models import Dataset, DatasetVersion
from apps.mappings.models import Mapping
from benchbench.access import visible
from benchbench.files.runs import FORMATS
from benchbench.ir.planning.axes import whole_numbers
from benchbench.site.pages import PageForm, Sections, SizedFileField

ORDERS = (("", "Its scores, where its ranks agree"), ("score", "Its scores"), ("rank", "Its ranks"))


class RunForm(PageForm):
    content_field = "file"
    sections: ClassVar[Sections] = (
        ("", "", ("dataset", "file", "name")),
        ("Where it goes", "", ("benchmark", "version", "format", "order_by")),
        ("Measures of a new benchmark", "", ("k", "measures", "empty_queries")),
    )

    dataset = forms.ModelChoiceField(Dataset.objects.none(), help_text="The judged queries that the run answers.")
    file = SizedFileField(
        label="Run",
        limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
        remedy="Larger ones are imported by the command manage.py import_run.",
        help_text="A TREC run (lines qid Q0 docno rank score tag) or a Flowbaby run (JSON). It may be packed (.gz).",
    )
    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Name of the new benchmark. Empty: the tag of the run.",
    )
    benchmark = forms.ModelChoiceField(
        Benchmark.objects.none(),
        required=False,
        empty_label="A new benchmark",
        help_text="Runs of one benchmark share one leaderboard.",
    )
    version = forms.ModelChoiceField(
        DatasetVersion.objects.none(),
        required=False,
        empty_label="The newest",
        help_text="Of the dataset, for a new benchmark.",
    )
    format = forms.ChoiceField(required=False, choices=[DETECT, *FORMATS.items()], help_text="Of the file.")
    order_by = forms.ChoiceField(
        required=False,
        choices=ORDERS,
        label="Ordered by",
        help_text="For a Flowbaby run. A TREC run is ordered by its scores; its ranks are not read.",
    )
    k = ListField(
        whole_numbers,
        "a whole number",
        label="Measured at k",
        help_text="Empty: 5, 10, 20. nDCG@10 decides the order, and is always included.",
    )
    measures = ListField(
        names_in,
        "a measure",
        label="Further measures",
        help_text="“Success@5, ERR@10, RBP(p=0.8)”: ours, and those of ir_measures.",
    )

    empty_queries = forms.ChoiceField(
        required=False,
        choices=[("zero", "count as 0"), ("skip", "are left out of the means")],
        label="Queries without a relevant judgment",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Mapping, "dataset")
        dataset = self._dataset()
        versions = DatasetVersion.objects.filter(dataset=dataset, frozen_at__isnull=False)
        benchmarks = visible(Benchmark.objects.filter(mapping__dataset=dataset), self.user)
        self._offer("version", versions.select_related("dataset"))
        self._offer("benchmark", benchmarks.filter(mapping__collection__kind=Collection.Kind.EXTERNAL))

    def reading(self) -> dict[str, Any]:
        """Return how the file is to be read."""
        return {"format": self.cleaned_data["format"], "order_by": self.cleaned_data["order_by"] or None}

    def _dataset(self) -> Dataset | None:
        """The dataset that the form names so far, on which the other choices depend."""
        field: Any = self.fields["dataset"]
        try:
            return field.clean(self.data.get("dataset") or self.initial.get("dataset"))
        except forms.ValidationError:
            return None

    def _offer(self, name: str, rows: QuerySet[Any]) -> None:
        field: Any = self.fields[name]
        field.queryset = rows
