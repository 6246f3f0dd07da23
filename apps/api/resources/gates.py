"""Baselines of a dataset: approve a run, list, look, retire, delete."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.answers import Answer, ModelAnswer, Moment, build_page
from apps.api.fields import Flag, Identifier, PageQuery, StrictSerializer, Text, Validated, as_int
from apps.api.resource import Resource, delete, find_visible, get, post
from apps.datasets.models import Dataset
from apps.records.finding import find_run
from apps.records.models import Baseline, Benchmark, Run
from apps.verdicts.gates.baselines import approve, delete_baseline, find_baseline, retire
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.reports import GateReport, render_markdown, report_of
from apps.verdicts.gates.rules import read_rules
from benchbench.access import visible
from benchbench.database.failures import read_again
from benchbench.ir.gate import Outcome


class NewBaseline(StrictSerializer):
    """A run for others of its dataset to be compared with."""

    run_id = Identifier(help_text="A completed run of the dataset.")
    name = Text(
        max_length=200, help_text="Its name in rules and commands. The current baseline of that name is retired."
    )
    reason = Text(max_length=10_000, help_text="Why other runs may be compared with this run.")


class BaselineQuery(PageQuery):
    """Query parameters for listing baselines."""

    retired = Flag(required=False, help_text="true: only retired ones; false: only current ones; default: all.")


class BaselineAnswer(ModelAnswer):
    """A baseline; it is current until it is retired."""

    benchmark_id = serializers.UUIDField(source="run.benchmark_id")
    run_label = serializers.CharField(source="run.label")
    approved_by = serializers.CharField(
        source="approved_by.username", allow_null=True, help_text="A user; null: the user was deleted."
    )
    approved_at = Moment(source="created_at")
    retired_by = serializers.CharField(
        source="retired_by.username", allow_null=True, help_text="A user; null while it is current."
    )

    class Meta:
        model = Baseline
        fields = [
            *("id", "dataset_id", "name", "reason", "benchmark_id", "run_id", "run_label", "approved_by"),
            *("approved_at", "retired_by", "retired_at"),
        ]


BaselinePage = build_page("baselines", BaselineAnswer)
OUTCOMES = list(Outcome)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}]})
class RulesField(serializers.Field):
    """Rules of a gate, as docs/gates.md describes them: a YAML text, or the same as an object."""

    def to_internal_value(self, data: object) -> str | dict[str, object]:
        if isinstance(data, str | dict):
            return data
        raise serializers.ValidationError("Send a YAML text, or the same as an object.")


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string", "const": "all"}, {"type": "null"}]})
class RunField(serializers.Field):
    """A run by its number, or "all"."""

    def to_internal_value(self, data: object) -> int | str:
        value = as_int(data)
        if value == "all" or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise serializers.ValidationError('Send the number of a run, such as 3, or "all".')


class GateRules(StrictSerializer):
    """Rules for judging a run."""

    rules = RulesField()
    baseline = Text(allow_null=True, default=None, help_text="Name or id of a current baseline.")
    version = serializers.IntegerField(
        min_value=1, allow_null=True, default=None, help_text="Dataset version of the values; default: the benchmark's."
    )


class BenchmarkGateRules(GateRules):
    """Rules for judging runs of a benchmark."""

    run = RunField(allow_null=True, default=None, help_text="Default: the best run.")


class GateAnswer(Answer):
    """The outcome of a gate, with the check of each rule."""

    markdown = serializers.CharField(help_text="The same as a comment for a pull request.")

    class Meta:
        dataclass = GateReport


class Baselines(Resource):
    model = Baseline
    route = "benchmark-datasets/<id:dataset_id>/baselines"

    @get("", BaselinePage, BaselineQuery)
    def list_baselines(self, dataset: Dataset, query: Validated) -> QuerySet[Baseline]:
        """List the baselines of a dataset, current and retired, newest first."""
        rows = visible(load_baselines(dataset).order_by("-created_at", "id"), self.user, through=OWNER)
        return rows.filter(retired_at__isnull=not query["retired"]) if "retired" in query else rows

    @post(
        "",
        BaselineAnswer,
        NewBaseline,
        act="add",
        status=201,
        history="Approve a completed run of the dataset as a baseline.",
    )
    def approve_baseline(self, dataset: Dataset, data: Validated) -> Baseline:
        """Approve a completed run of the dataset as a baseline.

        The current baseline of that name is retired. 409 if the run did not complete, is that baseline already, or you
        may not view the current baseline.
        """
        runs = Run.objects.filter(benchmark__dataset_version__dataset=dataset)
        run = find_visible(runs, data["run_id"], self.user, through="benchmark")
        baseline = approve(run, name=data["name"], reason=data["reason"], by=self.user)
        return read_again(load_baselines(dataset), baseline.pk)

    @get("/<id:baseline_id>", BaselineAnswer)
    def get_baseline(self, baseline: Baseline) -> Baseline:
        """Show a baseline."""
        return baseline

    @delete("/<id:baseline_id>", history="Delete a retired baseline.")
    def delete_baseline(self, baseline: Baseline) -> None:
        """Delete a retired baseline, so that its benchmark can be deleted; 409 while it is current."""
        delete_baseline(baseline)

    @post("/<id:baseline_id>/retire", BaselineAnswer, history="Retire a baseline.")
    def retire_baseline(self, baseline: Baseline) -> Baseline:
        """Retire a baseline; it remains in the list. 409 if it is retired already."""
        retire(baseline, by=self.user)
        return baseline

    def find(self, dataset_id: UUID, baseline_id: UUID | None = None) -> Any:
        dataset = find_visible(Dataset.objects.all(), dataset_id, self.user)
        return find_visible(load_baselines(dataset), baseline_id, self.user, through=OWNER) if baseline_id else dataset


OWNER = "run__benchmark"


def load_baselines(dataset: Dataset) -> QuerySet[Baseline]:
    """Return the baselines of a dataset with the rows that their answers need."""
    return dataset.baselines.select_related("run", "approved_by", "retired_by")


class BenchmarkGates(Resource):
    model = Benchmark

    @post("benchmarks/<id:benchmark_id>/gate", GateAnswer, BenchmarkGateRules, act="view", tags=["gates"])
    def gate_benchmark(self, benchmark: Benchmark, data: Validated) -> dict[str, object]:
        """Judge the best run of a benchmark, the run of a number, or all of them. 200 for a failed gate too."""
        subject = find_run(benchmark, data["run"]) if isinstance(data["run"], int) else benchmark
        return run_gate(self.user, subject, data, every_run=data["run"] == "all")


class RunGates(Resource):
    model = Run
    through = "benchmark"

    @post("runs/<id:run_id>/gate", GateAnswer, GateRules, act="view", tags=["gates"])
    def gate_run(self, run: Run, data: Validated) -> dict[str, object]:
        """Judge the run that the address names. 200 for a failed gate too."""
        return run_gate(self.user, run, data)


def run_gate(user: User, subject: Run | Benchmark, data: Validated, *, every_run: bool = False) -> dict[str, object]:
    rules = read_rules(data["rules"], location="rules")
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    name = data["baseline"]
    baseline = find_baseline(name, benchmark.dataset_version.dataset, user=user) if name else None
    result = gate(subject, rules=rules, baseline=baseline, every_run=every_run, version=data["version"], by=user)
    return vars(report_of(result)) | {"markdown": render_markdown(result)}
