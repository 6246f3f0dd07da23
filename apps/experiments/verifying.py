"""Comparison of a benchmark that ran from an experiment file with the figures in that file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from apps.experiments.manifests import ManifestStateError, build_result, load_own_evaluations
from apps.operations.models import Status
from apps.records.models import Benchmark, Run
from apps.records.models.provenance import Environment
from apps.records.provenance import compare_environments
from benchbench.decimals import counted

MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of a second run with the first: `values` means of `compared` runs, of the `runs` in the file.

    Runs that completed neither then nor now are not compared. Without compared runs nothing is reproduced.
    `differences` has a sentence for each run with different figures. `environment` lists possible causes.
    """

    source: Annotated[str, "The name of the first benchmark."]
    runs: int
    compared: int
    values: int
    differences: Annotated[tuple[str, ...], "A sentence for each run."]
    environment: Annotated[tuple[str, ...], "Other differences."]

    @property
    def reproduces(self) -> bool:
        return self.compared > 0 and not self.differences

    @property
    def sentence(self) -> str:
        if self.differences:
            return f"Differs from “{self.source}” in {len(self.differences)} of its {counted(self.runs, 'run')}."
        if not self.compared:
            return f"Nothing to compare with “{self.source}”: no run of it completed, then or now."
        neither = self.runs - self.compared
        note = f"; {neither} completed neither then nor now" if neither else ""
        return (
            f"Reproduces every figure of “{self.source}”: {self.values:,} means in "
            f"{counted(self.compared, 'run')}{note}."
        )


def verify(benchmark: Benchmark) -> Verification:
    """Compare every run of `benchmark` with the experiment file that it ran from: means and numbers of queries.

    Measures added later are not compared. The number of database queries is the same for any number of runs. Raises
    ManifestStateError if the benchmark did not run from a file with figures, or has not ended.
    """
    if not benchmark.manifest:
        raise ManifestStateError(
            f"The benchmark {benchmark.name!r} was not run from an experiment file with values, so it cannot be "
            "compared."
        )
    if benchmark.status not in (Status.COMPLETED, Status.FAILED):
        raise ManifestStateError(
            f"The benchmark {benchmark.name!r} is {benchmark.status}: wait until it has completed."
        )
    runs = {run.config_hash: run for run in benchmark.runs.all()}
    evaluations = load_own_evaluations(benchmark)
    file_runs = benchmark.manifest["runs"]
    measures = {run["config_hash"]: (run["result"] or {}).get("means") for run in file_runs}
    results = {
        run.config_hash: build_result(
            evaluations[run.pk], measures.get(run.config_hash) or evaluations[run.pk].measures
        )
        for run in runs.values()
        if run.status == Run.Status.COMPLETED and run.pk in evaluations
    }
    expected = {run["config_hash"] for run in file_runs}
    differences = [text for run in file_runs if (text := _compare_run(run, runs, results))]
    differences += [
        f"{run.label}: the experiment file has no such run." for key, run in runs.items() if key not in expected
    ]
    compared = [result for key, result in results.items() if key in expected]
    then = [Environment.from_dict(worker) for run in file_runs for worker in run.get("made_by", ())]
    now = [worker for run in runs.values() for worker in run.lineage.made_by]
    return Verification(
        source=str(benchmark.manifest["benchmark"]["name"]),
        runs=len(file_runs),
        compared=len(compared),
        values=sum(len(result["means"]) for result in compared),
        differences=tuple(differences),
        environment=tuple(compare_environments(then, now)),
    )


def _compare_run(file_run: dict[str, Any], runs: dict[str, Run], results: dict[str, dict[str, object]]) -> str:
    """Return a sentence on the differences of one run, or "" if it repeats the first."""
    run = runs.get(file_run["config_hash"])
    if run is None:
        return "" if file_run["result"] is None else f"{file_run['label']}: the benchmark lacks this run."
    before, after = file_run["result"], results.get(run.config_hash)
    if before is None or after is None:
        if before is after:
            return ""
        outcome = "completed" if before else f"did not complete ({file_run.get('error') or file_run.get('status')})"
        return f"{run.label}: then it {outcome}, here it {run.status}{f' ({run.error_message})' if not after else ''}."
    clauses = list(_list_changes(before, after))
    is_exact = run.configuration.ann == "exact"
    caveat = "" if is_exact else " It searches approximately: a rebuilt index finds slightly different chunks."
    caveat += " Its search engine answered again, perhaps from other documents." if run.configuration.engine else ""
    return f"{run.label}: {'; '.join(clauses)}.{caveat}" if clauses else ""


def _list_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    changed = [name for name in before["means"] if before["means"][name] != after["means"].get(name)]
    for name in changed[:MAX_LISTED]:
        yield f"{name} was {before['means'].get(name)}, is {after['means'].get(name)}"
    if len(changed) > MAX_LISTED:
        yield f"further measures that differ: {len(changed) - MAX_LISTED}"
    for name, label in (("queries", "queries in the means"), ("failed_queries", "failed queries")):
        if before[name] != after[name]:
            yield f"{label} were {before[name]}, are {after[name]}"
