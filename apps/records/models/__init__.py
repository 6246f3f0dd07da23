"""Tables of benchmarks: benchmarks and runs, their results and values, gates, verdicts, schedules.

Imported by the whole room and by the rooms above.
"""

from apps.records.models.benchmarks import Baseline, Benchmark, Origin, Run
from apps.records.models.gates import GateOutcome
from apps.records.models.lists import ListSource, PairList, QueryResult, RerankerRevision, StageList
from apps.records.models.preparations import Preparation
from apps.records.models.progress import MeansSoFar
from apps.records.models.schedules import GateState, Notice, Repeat, Schedule
from apps.records.models.values import BatchValues, Evaluation
from apps.records.models.verdicts import BenchmarkVerdict, RoundVerdict

__all__ = [
    "Baseline",
    "BatchValues",
    "Benchmark",
    "BenchmarkVerdict",
    "Evaluation",
    "GateOutcome",
    "GateState",
    "ListSource",
    "MeansSoFar",
    "Notice",
    "Origin",
    "PairList",
    "Preparation",
    "QueryResult",
    "Repeat",
    "RerankerRevision",
    "RoundVerdict",
    "Run",
    "Schedule",
    "StageList",
]
