"""The measure as a value, such as `nDCG@10`, and the values of measures for the queries of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchbench.ir.measures import library
from benchbench.ir.measures.definitions import BY_LIBRARY, DEFINITIONS, Definition
from benchbench.ir.measures.graded import GradedRankings, Values
from benchbench.ir.measures.spelling import MAX_NAME_LENGTH, MeasureError, check_cutoff, refuse


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """The definition `nDCG@10`; its text parses back. A cutoff of 0 looks at nothing and is worth 0: `read` refuses it.

    Every other measure of the library ir_measures is one too, its parameters part of its name: `ERR@20`,
    `RBP(p=0.5,rel=1)`, `nDCG(dcg='exp-log2')@10`.
    """

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if not self.is_ours:
            canonical = library.canonicalize(str(self))
            if canonical != str(self) and not library.is_own_spelling(str(self)):
                raise MeasureError(f"The measure {self} must be written as {canonical}.")
        elif self.cutoff is None and DEFINITIONS[self.name].needs_cutoff:
            refuse(self.name, f"it needs a cutoff, such as {self.name}@10")

    @classmethod
    def read(cls, text: str) -> Measure:
        """Return the measure that a person or a program names. Every name from outside is read here.

        These are ours (`nDCG@10`, `RR`) in any case, their names in the API (`recall@5`, `mrr`), and those of the
        library ir_measures (`ERR@20`, `RBP(p=.8)`). Raises MeasureError, whose sentence every interface shows.
        """
        text = text.strip()
        name, cutoff = _split(text)
        if name.lower() in NAMES:
            check_cutoff(text, cutoff)
            return cls(NAMES[name.lower()], cutoff)
        name, cutoff = _split(library.canonicalize(text))
        return cls(name, cutoff)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure with a stored name, or its name in the API.

        Stored names may be older, and stay: with a cutoff of 0, or without a parameter, as in `RBP(rel=1)`. Raises
        MeasureError.
        """
        name, cutoff = _split(text)
        if name.lower() in NAMES:
            return cls(NAMES[name.lower()], cutoff)
        return cls(name, cutoff) if library.is_own_spelling(text) else cls.read(text)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    __repr__ = __str__

    @property
    def is_ours(self) -> bool:
        """Return whether BenchBench computes it, rather than the library."""
        return self.name in DEFINITIONS

    @property
    def definition(self) -> Definition:
        """Return the definition under the measure's own name; k in the sentences stands for its cutoff."""
        if self.is_ours:
            return replace(DEFINITIONS[self.name], written=str(self))
        title, sentence = library.describe(str(self))
        return replace(BY_LIBRARY, written=str(self), title=title, meaning=sentence)

    @property
    def wire(self) -> str:
        """Return the measure's name in the API, exports and events."""
        name = WIRE_NAMES.get((self.name, self.cutoff is not None), self.name)
        return name if self.cutoff is None else f"{name}@{self.cutoff}"


WIRE_NAMES = {  # by name and whether there is a cutoff
    ("P", True): "precision",
    ("R", True): "recall",
    ("nDCG", True): "ndcg",
    ("AP", True): "map",
    ("AP", False): "ap",
    ("RR", False): "mrr",
}
NAMES = {name.lower(): name for name in DEFINITIONS} | {wire: name for (name, _), wire in WIRE_NAMES.items()}


def evaluate(measures: Sequence[Measure], graded: GradedRankings) -> Values:
    """Return the value of each measure for each query, (len(measures), q), at full precision.

    NaN where a query has no value: `FirstRelevant` alone, where no relevant document is found. Raises MeasureError
    where the library cannot compute one of its measures of these grades.
    """
    theirs = [str(measure) for measure in measures if not measure.is_ours]
    by_library = iter(library.evaluate(theirs, graded) if theirs else ())
    formulas = [(measure, DEFINITIONS.get(measure.name, BY_LIBRARY).formula) for measure in measures]
    values = [formula(graded, measure.cutoff) if formula else next(by_library) for measure, formula in formulas]
    return np.stack(values) if values else np.empty((0, len(graded.lengths)))


def _split(text: str) -> tuple[str, int | None]:
    """Return name and cutoff. Without a whole number after the @, or in a text too long, the whole text is the name."""
    written = re.fullmatch(r"(.+)@([0-9]+)", text) if len(text) <= MAX_NAME_LENGTH else None
    return (written[1], int(written[2])) if written else (text, None)
