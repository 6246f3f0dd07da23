"""Tables of benchmarks: benchmarks and runs, their lists of results, their values, and outcomes of gates.

Imported by the whole room and by the rooms above.
"""

from apps.benchmarks.models.benchmarks import Baseline, Benchmark, Origin, RerankerRevision, Run
from apps.benchmarks.models.gates import GateOutcome
from apps.benchmarks.models.lists import ListSource, PairList, QueryResult, StageList
from apps.benchmarks.models.values import BatchValues, Evaluation

__all__ = [
    "Baseline",
    "BatchValues",
    "Benchmark",
    "Evaluation",
    "GateOutcome",
    "ListSource",
    "Origin",
    "PairList",
    "QueryResult",
    "RerankerRevision",
    "Run",
    "StageList",
]
