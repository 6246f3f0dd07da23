"""Notes of all batches of a benchmark, merged at its end."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from apps.execution.running.engines import DECLARED, RETRIES, UNPROMPTED
from apps.execution.running.latencies import LATENCIES
from apps.execution.running.outcomes import DOWN, STALLS, NotedQueries
from apps.records.measuring.batch_values import Ties
from apps.records.models import Benchmark
from apps.records.models.batches import load_reports
from benchbench.ir.planning.plan import RunPlan


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of all batches of a benchmark, also of earlier operations.

    By run: the queries for which a depth left too few documents (`short`), its `ties`, and the distinct environments
    of the workers. By stage: `queries`, each once even if retried; the sums of numbers such as STALLS; and `lists` of
    what the batches noted of a search engine.
    """

    short: defaultdict[str, set[int]]
    ties: defaultdict[str, Ties]
    environments: defaultdict[str, list[object]]
    queries: NotedQueries
    numbers: Counter[tuple[str, str]]
    lists: defaultdict[tuple[str, str], list[Any]]

    def count(self, run: RunPlan, name: str) -> int:
        """Return the sum of a number over the stages of a run."""
        return sum(self.numbers[stage.key, name] for stage in run.stages)


def load_notes(benchmark: Benchmark) -> Notes:
    notes = Notes(defaultdict(set), defaultdict(Ties), defaultdict(list), {}, Counter(), defaultdict(list))
    for report in load_reports(benchmark):
        for run_id, share in report.runs.items():
            notes.short[run_id].update(share.short)
            notes.ties[run_id] += Ties(share.ranked, share.tied, share.tied_query)
            if report.made_by not in notes.environments[run_id]:
                notes.environments[run_id].append(report.made_by)
        for stage, stage_notes in report.notes.items():
            for name in (STALLS, RETRIES):
                notes.numbers[stage, name] += stage_notes.pop(name, 0)
            for name in (DECLARED, DOWN, LATENCIES, UNPROMPTED):
                notes.lists[stage, name] += stage_notes.pop(name, [])
            for name, ids in stage_notes.items():
                notes.queries.setdefault(stage, {}).setdefault(name, set()).update(ids)
    return notes
