"""Baselines of a dataset: approve a run, list, look, retire, delete."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, Moment, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import Flag, Identifier, PageQuery, StrictSerializer, Text, as_whole, require_empty, valid
from apps.benchmarks.gates.baselines import approve, delete_baseline, find_baseline, retire
from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.reports import GateReport, markdown_of, report_of
from apps.benchmarks.gates.rules import read_rules
from apps.benchmarks.models import Baseline, Benchmark, Run
from apps.benchmarks.runs import find_run
from apps.datasets.models import Dataset
from benchbench.access import visible
from benchbench.database.failures import read_again
from benchbench.ir.gate import Outcome


class NewBaseline(StrictSerializer):
    """A run that other runs of its dataset will be compared with."""

    run_id = Identifier(help_text="A completed run of the dataset.")
    name = Text(
        max_length=200, help_text="Its name in rules and commands. The current baseline of that name is retired."
    )
    reason = Text(max_length=10_000, help_text="Why other runs may be compared with this run.")


class BaselineQuery(PageQuery):
    """Which page of which baselines."""

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


BaselinePage = page_of("baselines", BaselineAnswer)
OUTCOMES = list(Outcome)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}]})
class RulesField(serializers.Field):
    """Rules of a gate, as docs/gates.md describes them: a YAML text, or the same as an object."""

    def to_internal_value(self, data: Any) -> str | dict[str, Any]:
        if isinstance(data, str | dict):
            return data
        raise serializers.ValidationError("Send a YAML text, or the same as an object.")


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string", "const": "all"}, {"type": "null"}]})
class RunField(serializers.Field):
    """A run by its number, or "all"."""

    def to_internal_value(self, data: Any) -> int | str:
        value = as_whole(data)
        if value == "all" or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise serializers.ValidationError('Send the number of a run, such as 3, or "all".')


class GateRules(StrictSerializer):
    """The rules by which a run is judged."""

    rules = RulesField()
    baseline = Text(required=False, allow_null=True, default=None, help_text="Name or id of a current baseline.")


class BenchmarkGateRules(GateRules):
    """The rules by which runs of a benchmark are judged."""

    run = RunField(required=False, allow_null=True, default=None, help_text="Default: the best run.")


class GateAnswer(Answer):
    """The outcome of a gate, and how it came about."""

    markdown = serializers.CharField(help_text="The same as a comment for a pull request.")

    class Meta:
        dataclass = GateReport


OWNER = "run__benchmark"


class Baselines(Endpoint):
    model = Baseline
    acts = {"POST": "add"}

    @extend_schema(operation_id="list_baselines", parameters=[BaselineQuery], responses=BaselinePage)
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the baselines of a dataset, current and retired, newest first."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        query = valid(BaselineQuery, request.query_params)
        rows = visible(told(dataset).order_by("-created_at", "id"), request.user, through=OWNER)
        if "retired" in query:
            rows = rows.filter(retired_at__isnull=not query["retired"])
        return answer_page(BaselinePage, rows, query)

    @extend_schema(operation_id="approve_baseline", request=NewBaseline, responses={201: BaselineAnswer})
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Approve a completed run of the dataset as a baseline.

        The baseline of that name so far is retired. 409 where the run did not complete, has the name already, or you
        may not see the baseline that has it.
        """
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        data = valid(NewBaseline, request.data)
        runs = Run.objects.filter(benchmark__dataset_version__dataset=dataset)
        run = find_visible(runs, data["run_id"], request.user, through="benchmark")
        made = approve(run, name=data["name"], reason=data["reason"], by=request.user)
        return Response(BaselineAnswer(read_again(told(dataset), made.pk)).data, status=201)


class OneBaseline(Endpoint):
    model = Baseline

    @extend_schema(operation_id="get_baseline", responses=BaselineAnswer)
    def get(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Show a baseline."""
        return Response(BaselineAnswer(find(request, dataset_id, baseline_id)).data)

    @extend_schema(operation_id="delete_baseline", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Delete a retired baseline, which keeps its benchmark from being deleted; 409 while it is current."""
        delete_baseline(find(request, dataset_id, baseline_id))
        return Response(status=204)


class RetireBaseline(Endpoint):
    model = Baseline

    @extend_schema(operation_id="retire_baseline", request=None, responses=BaselineAnswer)
    def post(self, request: Request, dataset_id: UUID, baseline_id: UUID) -> Response:
        """Retire a baseline; it stays in the list. 409 where it is retired already."""
        baseline = find(request, dataset_id, baseline_id)
        require_empty(request.data)
        retire(baseline, by=request.user)
        return Response(BaselineAnswer(baseline).data)


def told(dataset: Dataset) -> QuerySet[Baseline]:
    """Return the baselines of a dataset with what is told of each."""
    return dataset.baselines.select_related("run", "approved_by", "retired_by")


def find(request: Request, dataset_id: UUID, baseline_id: UUID) -> Any:
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    return find_visible(told(dataset), baseline_id, request.user, through=OWNER)


class BenchmarkGate(Endpoint):
    model = Benchmark
    acts = {"POST": "view"}

    @extend_schema(operation_id="gate_benchmark", request=BenchmarkGateRules, responses=GateAnswer, tags=["gates"])
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Judge the best run of a benchmark, the run of a number, or all of them; 200 whatever the outcome."""
        benchmark = find_visible(Benchmark.objects.all(), benchmark_id, request.user)
        data = valid(BenchmarkGateRules, request.data)
        subject = find_run(benchmark, data["run"]) if isinstance(data["run"], int) else benchmark
        return judged(request, subject, data, every_run=data["run"] == "all")


class RunGate(Endpoint):
    model = Run
    acts = {"POST": "view"}

    @extend_schema(operation_id="gate_run", request=GateRules, responses=GateAnswer, tags=["gates"])
    def post(self, request: Request, run_id: UUID) -> Response:
        """Judge the run that the address names; 200 whatever the outcome."""
        run = find_visible(Run.objects.all(), run_id, request.user, through="benchmark")
        return judged(request, run, valid(GateRules, request.data))


def judged(request: Request, subject: Run | Benchmark, data: dict[str, Any], *, every_run: bool = False) -> Response:
    rules = read_rules(data["rules"], where="rules")
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    named = data["baseline"]
    baseline = find_baseline(named, benchmark.dataset_version.dataset, user=request.user) if named else None
    result = gate(subject, rules=rules, baseline=baseline, every_run=every_run)
    return Response(GateAnswer(vars(report_of(result)) | {"markdown": markdown_of(result)}).data)
