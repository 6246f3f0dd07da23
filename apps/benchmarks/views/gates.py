"""Pages of gates and baselines."""

import uuid
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from apps.records.measuring.slicing import try_slicing
from apps.records.models import Baseline, Benchmark, Run
from apps.verdicts.gates.baselines import approve, list_baselines
from apps.verdicts.gates.common import CommonRules, write_rules
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.reports import describe_means, render_headline, render_markdown
from apps.verdicts.gates.rules import MAX_CHARACTERS, read_rules
from benchbench.access import staff, visible
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure
from benchbench.ir.rules import Rules
from benchbench.ir.slices import MINIMUM
from benchbench.reading import strict_yaml
from benchbench.reading.strict_json import decode
from benchbench.site.admin import SiteAdmin
from benchbench.site.pages import PageForm, Sections, SizedFileField, show_form
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


class LimitsForm(forms.Form):
    """The fields of the rules that need no run: limits on a mean and on latency. An empty one adds no rule."""

    measure = forms.ChoiceField(required=False, help_text="For the mean, the baseline and slices.")
    at_least = forms.FloatField(
        label="Its mean must be at least", required=False, min_value=0, help_text="For example 0.5: 0.49 fails."
    )
    may_lose = forms.FloatField(
        label="It may lose against the baseline at most",
        required=False,
        min_value=0,
        help_text="For example 0.01: where the baseline has 0.60, a significant loss to 0.55 fails. Without enough "
        "queries to exclude a larger loss, the gate is undecided.",
    )
    unless_significant = forms.BooleanField(
        label="Pass unless a larger loss is significant",
        required=False,
        help_text="Few queries then pass a real loss.",
    )
    statistic = forms.ChoiceField(
        label="Time per query",
        required=False,
        choices=[
            ("mean", "mean"),
            *((f"p{share}", f"p{share}: that of {share} % of the queries, at most") for share in (50, 95, 99)),
        ],
    )
    latency_ms = forms.FloatField(
        label="It may take at most, in milliseconds", required=False, min_value=0, help_text="For example 300."
    )

    def choose_measure(self, benchmark: Benchmark | None) -> None:
        """Offer the measures of a benchmark, or the usual ones, of which more is better."""
        names = [f"nDCG@{benchmark.primary_k}", *benchmark.measures] if benchmark else ["nDCG@10", "RR", "AP"]
        usable = [name for name in dict.fromkeys(names) if Measure.parse(name).definition.better != "lower"]
        field: Any = self.fields["measure"]
        field.choices = [(name, name) for name in usable]

    def read_limits(self) -> dict[str, Any]:
        """Return the values of the fields, as `CommonRules` has them."""
        return {name: self.cleaned_data.get(name) for name in LimitsForm.base_fields}

    def refuse_limits(self, field: str) -> None:
        """Refuse limits that a user gave where `field` has written rules: they would not count."""
        limits = {name: limit for name, limit in self.read_limits().items() if limit != self.fields[name].initial}
        if write_rules(CommonRules(**{"measure": "", **limits})):
            self.add_error(
                field,
                "Written rules replace the limits, which would not count: write them into the rules and empty their "
                "fields, or leave the rules empty.",
            )


class GateForm(LimitsForm, PageForm):
    """Form of a gate: common rules by field, or written ones. `parse_rules()` returns the rules of a valid form.

    `written` is the text of the rules that the fields gave, for a file.
    """

    content_field = "rules_text"
    sections: ClassVar[Sections] = (
        ("", "", ("baseline", "version")),
        ("Quality", "An empty field adds no rule.", ("measure", "at_least", "may_lose", "unless_significant")),
        ("Latency", "", ("statistic", "latency_ms")),
        ("Slices", "", ("slices", "may_fall")),
        ("", "", ("rules_text", "file")),
    )

    baseline = forms.ModelChoiceField(
        Baseline.objects.none(),
        required=False,
        empty_label="None: check only rules without a baseline",
        help_text="The approved run to compare with.",
    )
    version = forms.TypedChoiceField(
        coerce=int,
        empty_value=None,
        required=False,
        label="Dataset version",
        help_text="The version whose judgments the values rest on.",
    )
    slices = forms.MultipleChoiceField(
        label="Slices that must not drop",
        required=False,
    )
    may_fall = forms.FloatField(
        label="They may drop below the baseline by",
        required=False,
        min_value=0,
        initial=0.05,
        help_text="For example 0.05: a slice with 0.60 in the baseline fails below 0.55.",
    )
    rules_text = forms.CharField(
        label="Rules",
        required=False,
        max_length=MAX_CHARACTERS,
        strip=False,
        widget=forms.Textarea({"rows": 10, "spellcheck": "false", "class": "bb-code"}),
        help_text=(
            "YAML: floors, slices, against_baseline, must_not_fail, false_answers, latency_ms, coverage, "
            "runs_may_fail, alpha. The text replaces the fields above."
        ),
    )
    file = SizedFileField(
        label="Or a file of rules",
        required=False,
        accept=".yaml,.yml",
        limit=MAX_CHARACTERS,
        remedy="Rules must be shorter.",
        help_text="For example the gate.yaml of your pipeline. The file replaces the text too.",
    )

    def __init__(self, *args: Any, run: Run, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.written = ""
        self.run, version = run, run.benchmark.dataset_version
        fields: dict[str, Any] = self.fields
        baselines = list_baselines(version.dataset)
        fields["baseline"].queryset = visible(baselines, self.user, through="run__benchmark")
        fields["baseline"].initial = fields["baseline"].queryset.first()
        self.choose_measure(run.benchmark)
        fields["may_lose"].initial = 0.01 if fields["baseline"].initial else None
        measured = version.dataset.versions.filter(evaluations__run=run).order_by("-number")
        fields["version"].choices = [(one.number, f"version {one.number}") for one in measured]
        fields["version"].initial = version.number
        slicing, _ = try_slicing(run.benchmark, run.evaluations.filter(dataset_version=version).first())
        large = [one for one in slicing.slices if not one.is_small] if slicing else []
        fields["slices"].choices = [(one.name, f"{one.name} ({counted(one.n, 'query')})") for one in large]
        if not large:
            fields["slices"].help_text = f"Nothing to choose: no slice has {MINIMUM} queries with values."
        fields["rules_text"].widget.attrs["placeholder"] = EXAMPLE.format(k=run.benchmark.primary_k)

    def split_groups(self) -> tuple[list[Any], list[Any]]:
        """Return the groups of the common rules, and that of written rules."""
        *common, written = self.groups()
        return common, [written]

    @property
    def is_written(self) -> bool:
        """Whether rules are written, or are wrong, so that their fields must be seen."""
        return self.is_bound and bool(self.data.get("rules_text") or self["rules_text"].errors or self["file"].errors)

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        for field in ("file", "rules_text"):
            if values.get(field) and not self.errors:
                self.refuse_limits(field)
        return values

    def parse_rules(self) -> Rules:
        """Return the rules. Raises RulesError; an error in a file names the field of the file."""
        upload, values = self.cleaned_data["file"], self.cleaned_data
        if not upload and values["rules_text"].strip():
            return read_rules(values["rules_text"], location="The rules")
        if not upload:
            return self._read_fields()
        try:
            return read_rules(decode(upload.read(), location=upload.name), location=upload.name)
        except BenchbenchError as error:
            error.field = "file"
            raise

    def _read_fields(self) -> Rules:
        """Return the common rules, written as a file of rules and read as one."""
        values = self.cleaned_data
        common = CommonRules(**self.read_limits(), slices=values["slices"], may_fall=values["may_fall"] or 0.0)
        rules = write_rules(common, baseline=self.cleaned_data["baseline"], run=self.run)
        try:
            read = read_rules(rules, location="The form")
        except BenchbenchError as error:
            error.field = "at_least"
            raise
        self.written = strict_yaml.dump(rules)
        return read


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
    form = GateForm(request.POST if posted else None, request.FILES if posted else None, user=staff(request), run=run)
    base_context = {
        "run": run,
        "trail": [*model_admin.list_trail(run), run],
        "title": "Check the run against rules",
        "form": form,
        "submit": "Check the run",
        "media": form.media,
        "intro": "A gate checks a run against rules. The same rules work in a pipeline: manage.py gate.",
    }
    context = build_context(run, form) if form.is_valid() else {}
    return model_admin.render_page(request, "benchmarks/gate.html", base_context | context, original=run)


def build_context(run: Run, form: GateForm) -> dict[str, Any]:
    """Return the page's context for the verdict; add an error of the use case to the form."""
    try:
        baseline, version = form.cleaned_data["baseline"], form.cleaned_data["version"]
        result = gate(run, rules=form.parse_rules(), baseline=baseline, version=version, by=form.user)
    except BenchbenchError as error:
        form.present(error)
        return {}
    return {
        "result": result,
        "written": form.written,
        "headline": render_headline(result),
        "means": describe_means(result),
        "markdown": render_markdown(result),
    }
