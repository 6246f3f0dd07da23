"""The forms of a gate: pin a run as a baseline, and check a run against one."""

from typing import Any

from django import forms

from apps.benchmarks.gates.baselines import current_baselines
from apps.benchmarks.gates.rules import MAX_CHARACTERS, read_rules
from apps.benchmarks.models import Baseline, Benchmark, Run
from benchbench.access import visible
from benchbench.errors import BenchbenchError
from benchbench.ir.gate import Rules
from benchbench.site.pages import PageForm, SizedFileField

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
    run = RunField(Run.objects.none(), help_text="A completed run: the button on its page leads here.")
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
    """`rules()` are the rules of a valid form: those of the file where there is one."""

    content_field = "rules_text"

    baseline = forms.ModelChoiceField(
        Baseline.objects.none(),
        required=False,
        empty_label="None: only floors, latency and the like",
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
        remedy="Rules are shorter than that.",
        help_text="Such as the gate.yaml that your pipeline uses. It is used instead of the text above.",
    )

    def __init__(self, *args: Any, benchmark: Benchmark, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        baselines = current_baselines(benchmark.dataset_version.dataset)
        field: Any = self.fields["baseline"]
        field.queryset = visible(baselines, self.user, through="run__benchmark")
        field.initial = field.queryset.first()
        self.fields["rules_text"].initial = EXAMPLE.format(k=benchmark.primary_k)

    def rules(self) -> Rules:
        """Raises RulesError, for a file under its field."""
        upload = self.cleaned_data["file"]
        if not upload:
            return read_rules(self.cleaned_data["rules_text"], where="The rules")
        try:
            return read_rules(upload.read().decode("utf-8-sig"), where=upload.name)
        except UnicodeDecodeError:
            raise BenchbenchError(f"{upload.name} is not UTF-8 text.", field="file") from None
        except BenchbenchError as error:
            error.field = "file"
            raise
