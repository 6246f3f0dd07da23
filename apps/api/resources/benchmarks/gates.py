"""Gates: runs and benchmarks judged by written rules."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import valid
from apps.api.serializers.benchmarks.gates import BenchmarkGateRules, GateFacts, GateRules
from apps.benchmarks.finding import find_run
from apps.benchmarks.gates.baselines import find_baseline
from apps.benchmarks.gates.gating import gate
from apps.benchmarks.gates.reports import facts_of, markdown_of
from apps.benchmarks.gates.rules import read_rules
from apps.benchmarks.models import Benchmark, Run


class BenchmarkGate(Endpoint):
    model = Benchmark
    acts = {"POST": "view"}

    @extend_schema(operation_id="gate_benchmark", request=BenchmarkGateRules, responses=GateFacts, tags=["gates"])
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Judge the best run of a benchmark, the run of a number, or all of them; 200 whatever the outcome."""
        benchmark = find_visible(Benchmark.objects.all(), benchmark_id, request.user)
        data = valid(BenchmarkGateRules, request.data)
        subject = find_run(benchmark, data["run"]) if isinstance(data["run"], int) else benchmark
        return judged(request, subject, data, every_run=data["run"] == "all")


class RunGate(Endpoint):
    model = Run
    acts = {"POST": "view"}

    @extend_schema(operation_id="gate_run", request=GateRules, responses=GateFacts, tags=["gates"])
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
    return Response(GateFacts(facts_of(result) | {"markdown": markdown_of(result)}).data)
