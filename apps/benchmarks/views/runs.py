"""Pages to preview a file of rankings and import it as a run."""

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.benchmarks.fields import WEIGHTINGS, ExcludeSelfField, ListField
from apps.collections.models import Collection
from apps.datasets.forms import DETECT
from apps.datasets.models import Dataset, DatasetVersion
from apps.experiments.external.importing import NewBenchmark, choose_version, import_runs
from apps.experiments.external.reports import read_for
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from benchbench.access import describe_lack, may_change, staff, visible
from benchbench.files.runs import FORMATS
from benchbench.ir.planning.axes.kinds import parse_integers
from benchbench.models import leave_out_archived
from benchbench.reading.calls import split_calls
from benchbench.site.pages import (
    PageForm,
    Sections,
    SizedFileField,
    preview_page,
    read_form,
    render_choices,
    show_form,
)
from benchbench.site.reading import stored

ORDERS = (("", "Its scores, where its ranks agree"), ("score", "Its scores"), ("rank", "Its ranks"))


class RunForm(PageForm):
    content_field = "file"
    sections: ClassVar[Sections] = (
        ("", "", ("dataset", "file", "name")),
        ("Destination", "", ("benchmark", "version", "format", "order_by")),
        ("Measures of a new benchmark", "", ("k", "measures", "empty_queries", "weighting", "exclude_self")),
    )

    dataset = forms.ModelChoiceField(Dataset.objects.none(), help_text="The judged queries that the run answers.")
    file = SizedFileField(
        label="Run",
        limit="BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES",
        remedy="For larger files, use manage.py import_run.",
        help_text="A TREC run (lines qid Q0 docno rank score tag), a table with columns query, document, and rank or "
        "score, JSON of scores by query and document, a Flowbaby run, or a Quepid snapshot; .gz too.",
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
        help_text="Version of the dataset, for a new benchmark.",
    )
    format = forms.ChoiceField(required=False, choices=[DETECT, *FORMATS.items()], help_text="Format of the file.")
    order_by = forms.ChoiceField(
        required=False,
        choices=ORDERS,
        label="Ordered by",
        help_text="For a Flowbaby run or table. A TREC run is ordered by its scores; its ranks are not read.",
    )
    k = ListField(
        parse_integers,
        "a whole number",
        label="Measured at k",
        help_text="Empty: 5, 10, 20. nDCG@10 decides the order, and is always included.",
    )
    measures = ListField(
        split_calls,
        "a measure",
        label="Further measures",
        help_text="Built-in measures or those of ir_measures: “Success@5, ERR@10, RBP(p=0.8)”.",
    )

    empty_queries = forms.ChoiceField(
        required=False,
        choices=[("zero", "count as 0"), ("skip", "are left out of the means")],
        label="Queries without a relevant judgment",
    )
    weighting = forms.ChoiceField(required=False, choices=WEIGHTINGS, label="Weight of a query in the means")
    exclude_self = ExcludeSelfField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Mapping, "dataset")
        dataset = self._find_dataset()
        versions = DatasetVersion.objects.filter(dataset=dataset, frozen_at__isnull=False)
        benchmarks = leave_out_archived(visible(Benchmark.objects.filter(mapping__dataset=dataset), self.user))
        self._offer("version", versions.select_related("dataset"))
        self._offer("benchmark", benchmarks.filter(mapping__collection__kind=Collection.Kind.EXTERNAL, matrix={}))

    def get_options(self) -> dict[str, Any]:
        """Return the options for reading the file."""
        return {"format": self.cleaned_data["format"], "order_by": self.cleaned_data["order_by"] or None}

    def _find_dataset(self) -> Dataset | None:
        """Return the dataset chosen so far, on which the other choices depend."""
        field = self.fields["dataset"]
        try:
            return field.clean(self.data.get("dataset") or self.initial.get("dataset"))
        except forms.ValidationError:
            return None

    def _offer(self, name: str, rows: QuerySet[Any]) -> None:
        field: Any = self.fields[name]
        field.queryset = rows


def import_run(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: RunForm) -> HttpResponse:
        values = form.cleaned_data
        if values["benchmark"] and not may_change(values["benchmark"], request.user):
            raise PermissionDenied(describe_lack("benchmarks.change_benchmark"))
        with stored(form.cleaned_data["file"]) as path:
            imported = import_runs(
                [path],
                new=NewBenchmark(
                    owner=staff(request),
                    empty_queries=values["empty_queries"] or "zero",
                    **{name: values[name] for name in ("name", "k", "measures", "weighting", "exclude_self")},
                ),
                **{name: values[name] for name in ("dataset", "version", "benchmark")},
                **form.get_options(),
                is_upload=True,
            )
        ((run, report),) = imported.runs
        messages.success(request, f"Imported {report.sentence} It is the run “{run.label}”.")
        for note in report.list_notes():
            messages.warning(request, note)
        return redirect("admin:benchmark_results", imported.benchmark.pk)

    return show_form(
        request,
        model_admin,
        RunForm,
        act,
        title="Import a run",
        submit="Import",
        intro=(
            "An external run is measured like any other run. It needs no documents: judgments and runs name them by "
            "id. Choose a file; a preview shows its contents before anything is stored."
        ),
        template="benchmarks/run_form.html",
    )


@require_POST
def preview_run_file(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Return the preview of the form: a report on its file for the dataset, or its errors. Nothing is stored."""
    form = read_form(request, model_admin, RunForm)

    def look() -> dict[str, Any]:
        if not form.is_valid():
            return {}
        values = form.cleaned_data
        version = choose_version(values["dataset"], version=values["version"], benchmark=values["benchmark"])
        with stored(values["file"]) as path:
            _, report = read_for(version, path, **form.get_options(), is_upload=True)
        return {"report": report, "version": version, "format": FORMATS[report.format]}

    awaited = () if "file" in request.FILES else ("file", "dataset")
    return preview_page(request, "benchmarks/run_preview.html", form, look, awaited=awaited)


def run_choices(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Return the form's choice of benchmarks and versions of the chosen dataset that a run can be imported into."""
    return render_choices(request, model_admin, RunForm, "dataset", ["benchmark", "version"])
