"""Measures of rankings: as values, and computed for many queries at once.

Definitions are trec_eval's where it has the measure. A document is relevant when its grade is above 0; a negative grade
is a judgment, and gains nothing. R, AP and the ideal of nDCG divide by all relevant judgments of the query, found or
not. A judgment whose document cannot be found is in the truth under an id that no ranking contains. A query without
relevant judgments, or without results, scores 0. `definitions` defines each measure.
"""

from benchbench.ir.measures.definitions import DEFINITIONS, Definition
from benchbench.ir.measures.graded import (
    GradedRankings,
    SharedGrades,
    Truths,
    Values,
    count_once,
    grade_matrix,
    name_texts,
)
from benchbench.ir.measures.means import EmptyQueries, Means, mean
from benchbench.ir.measures.measure import Measure, evaluate
from benchbench.ir.measures.spelling import MeasureError

__all__ = [
    "DEFINITIONS",
    "Definition",
    "EmptyQueries",
    "GradedRankings",
    "Means",
    "Measure",
    "MeasureError",
    "SharedGrades",
    "Truths",
    "Values",
    "count_once",
    "evaluate",
    "grade_matrix",
    "mean",
    "name_texts",
]
