"""Runs and benchmarks judged by written rules."""

from typing import Any
from uuid import UUID

from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access import find_visible
from apps.benchmarks.baselines import find_baseline
from apps.benchmarks.finding import find_run
from apps.benchmarks.gate_reports import facts_of, markdown_of
from apps.benchmarks.gate_rules import read_rules
from apps.benchmarks.gating import gate
from apps.benchmarks.models import Benchmark, Run
from benchbench.errors import BenchbenchError
from benchbench.strict_json import kind


@api_view(["POST"])
def gate_benchmark(request: Request, benchmark_id: UUID) -> Response:
    """Judge the best run of a benchmark, the run of a number, or all of them."""
    benchmark = find_visible(Benchmark, benchmark_id, request.user)
    body = read_body(request, ("rules", "baseline", "run"))
    run = read_run(body.get("run"))
    subject = find_run(benchmark, run) if isinstance(run, int) else benchmark
    return judged(request, subject, body, every_run=run == "all")


@api_view(["POST"])
def gate_run(request: Request, run_id: UUID) -> Response:
    """Judge the run that the address names."""
    run = find_visible(Run, run_id, request.user, through="benchmark")
    return judged(request, run, read_body(request, ("rules", "baseline")))


def judged(request: Request, subject: Run | Benchmark, body: dict[str, Any], *, every_run: bool = False) -> Response:
    """Answer with what came of the gate: 200 whatever the outcome, which is in the body."""
    rules = read_rules(body["rules"], where="rules")
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    named = body.get("baseline")
    baseline = find_baseline(named, benchmark.dataset_version.dataset, user=request.user) if named else None
    result = gate(subject, rules=rules, baseline=baseline, every_run=every_run)
    return Response(facts_of(result) | {"markdown": markdown_of(result)})


def read_body(request: Request, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the body with `rules` (a text or an object) in it, and of `keys` no more than it states."""
    body = request.data
    if not isinstance(body, dict):
        raise BenchbenchError(f"The body is {kind(body)}: send an object with the key rules.")
    for key in body:
        if key not in keys:
            raise BenchbenchError(f"There is no key {key[:40]!r} here; there are {', '.join(keys)}.", field=key)
    if not isinstance(body.get("rules"), str | dict):
        raise BenchbenchError("State rules: a YAML text, or the same as an object.", field="rules")
    if not isinstance(body.get("baseline"), str | None):
        raise BenchbenchError("The baseline must be a string: the name or id of a current one.", field="baseline")
    return body


def read_run(stated: Any) -> int | str | None:
    if stated is None or stated == "all" or (isinstance(stated, int) and not isinstance(stated, bool)):
        return stated
    raise BenchbenchError('run must be the number of a run, such as 3, or "all".', field="run")
