"""Tables of benchmarks: benchmarks and runs, their results and values, gates, verdicts of rounds, schedules.

Imported by the whole room and by the rooms above.
"""

from apps.benchmarks.models.benchmarks import Baseline, Benchmark, Origin, RerankerRevision, Run
from apps.benchmarks.models.gates import GateOutcome
from apps.benchmarks.models.lists import ListSource, PairList, QueryResult, StageList
from apps.benchmarks.models.rounds import RoundVerdict
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
    "RoundVerdict",
    "Run",
    "Schedule",
    "StageList",
]
