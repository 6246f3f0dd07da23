"""Tables of benchmarks: benchmarks and runs, their lists of results, their values, outcomes of gates, and schedules.

Imported by the whole room and by the rooms above.
"""

from apps.benchmarks.models.benchmarks import Baseline, Benchmark, Origin, RerankerRevision, Run
from apps.benchmarks.models.gates import GateOutcome
from apps.benchmarks.models.lists import ListSource, PairList, QueryResult, StageList
from apps.benchmarks.models.schedules import GateState, Notice, Repeat, Schedule
from apps.benchmarks.models.values import BatchValues, Evaluation

__all__ = [
    "Baseline",
    "BatchValues",
    "Benchmark",
    "Evaluation",
    "GateOutcome",
    "GateState",
    "ListSource",
    "Notice",
    "Origin",
    "PairList",
    "QueryResult",
    "Repeat",
    "RerankerRevision",
    "Run",
    "Schedule",
    "StageList",
]
