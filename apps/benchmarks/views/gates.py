"""Pages of gates and baselines."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.benchmarks.gates.baselines import approve, list_baselines
from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.reports import describe_means, render_headline, render_markdown
from apps.benchmarks.gates.rules import MAX_CHARACTERS, read_rules
from apps.benchmarks.models import Baseline, Benchmark, Run
from benchbench.access import visible
from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Rules
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, SizedFileField, show_form, staff
from benchbench.site.panels import change_url

EXAMPLE = """\
floors:
  nDCG@{k}: 0.5
against_baseline:
  nDCG@{k}: {{may_lose: 0.01}}
coverage:
  failed_queries: 0
"""


class RunField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj}, in {obj.benchmark}"


class BaselineForm(PageForm):
    run = RunField(Run.objects.none(), help_text="A completed run. The button on its page opens this form.")
    name = forms.CharField(
        max_length=200,
        initial="main",
        help_text="Its name in rules and commands. The current baseline of that name is retired.",
    )
    reason = forms.CharField(
        widget=forms.Textarea({"rows": 3}), help_text="Why other runs may be compared with this run."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choose(Baseline, "run", through="benchmark")


class GateForm(PageForm):
    """Form of a gate. `parse_rules()` returns the rules of a valid form, those of the file if one is given."""

    content_field = "rules_text"

    baseline = forms.ModelChoiceField(
        Baseline.objects.none(),
        required=False,
        empty_label="None: check only rules without a baseline",
        help_text="The rules under against_baseline compare the run with it.",
    )
    rules_text = forms.CharField(
        label="Rules",
        required=False,
        max_length=MAX_CHARACTERS,
        strip=False,
        widget=forms.Textarea({"rows": 10, "spellcheck": "false", "class": "bb-code"}),
        help_text=(
            "YAML: floors, slices, against_baseline, must_not_fail, false_answers, latency_ms, coverage, "
            "runs_may_fail, alpha."
        ),
    )
    file = SizedFileField(
        label="Or a file of rules",
        required=False,
        accept=".yaml,.yml",
        limit=MAX_CHARACTERS,
        remedy="Rules must be shorter.",
        help_text="For example the gate.yaml of your pipeline. The file replaces the text above.",
    )

    def __init__(self, *args: Any, benchmark: Benchmark, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        baselines = list_baselines(benchmark.dataset_version.dataset)
        field: Any = self.fields["baseline"]
        field.queryset = visible(baselines, self.user, through="run__benchmark")
        field.initial = field.queryset.first()
        self.fields["rules_text"].initial = EXAMPLE.format(k=benchmark.primary_k)

    def parse_rules(self) -> Rules:
        """Return the rules. Raises RulesError; an error in a file names the field of the file."""
        upload = self.cleaned_data["file"]
        if not upload:
            return read_rules(self.cleaned_data["rules_text"], location="The rules")
        try:
            return read_rules(upload.read().decode("utf-8-sig"), location=upload.name)
        except UnicodeDecodeError:
            raise BenchbenchError(f"{upload.name} is not UTF-8 text.", field="file") from None
        except BenchbenchError as error:
            error.field = "file"
            raise


def add_baseline(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    def act(form: BaselineForm) -> HttpResponse:
        values = form.cleaned_data
        baseline = approve(values["run"], name=values["name"], reason=values["reason"], by=staff(request))
        messages.success(
            request,
            f'"{baseline.run}" is now the baseline "{baseline.name}" of {baseline.dataset}. Compare other runs with '
            "it in a gate, on their pages or in your pipeline.",
        )
        return redirect(change_url(baseline.run))

    return show_form(
        request,
        model_admin,
        BaselineForm,
        act,
        title="Pin a run as baseline",
        submit="Approve as baseline",
        intro=(
            "A baseline is an approved run. Gates compare later runs of the dataset with it, and the dataset's "
            "history shows it as a line."
        ),
    )


def gate_page(request: HttpRequest, model_admin: SiteAdmin, object_id: uuid.UUID) -> HttpResponse:
    """Judge a run by rules and a baseline, and show the result."""
    run: Run = model_admin.load_viewed(request, object_id)
    posted = request.method == "POST"
    form = GateForm(
        request.POST if posted else None, request.FILES if posted else None, user=request.user, benchmark=run.benchmark
    )
    base_context = {
        "run": run,
        "trail": [*model_admin.list_trail(run), run],
        "title": "Check the run against rules",
        "form": form,
        "submit": "Check the run",
        "media": form.media,
        "intro": "A gate checks a run against written rules. The same rules work in a pipeline: manage.py gate.",
    }
    context = build_context(run, form) if form.is_valid() else {}
    return model_admin.render_page(request, "benchmarks/gate.html", base_context | context, original=run)


def build_context(run: Run, form: GateForm) -> dict[str, Any]:
    """Return the page's context for the verdict; add an error of the use case to the form."""
    try:
        result = gate(run, rules=form.parse_rules(), baseline=form.cleaned_data["baseline"], by=form.user)
    except BenchbenchError as error:
        form.present(error)
        return {}
    return {
        "result": result,
        "headline": render_headline(result),
        "means": describe_means(result),
        "markdown": render_markdown(result),
    }
