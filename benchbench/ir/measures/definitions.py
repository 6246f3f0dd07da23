"""The measures that BenchBench computes itself: their meaning, in words for pages, and formulas.

docs/measures.md has the same words. A formula is a function of graded rankings and a cutoff, which returns (q,) values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchbench.ir.measures.graded import GradedRankings, Values, share

BINARY = "A document is relevant if its grade is above 0; higher grades gain no more."
ZERO = "0 if a query has no relevant judgments or no results."
TREC = "trec_eval"

Formula = Callable[[GradedRankings, int | None], Values]


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a measure. In the sentences k stands for the cutoff; `greatest` bounds its values.

    A measure of the library has no formula here.
    """

    written: str
    title: str
    meaning: str
    source: str
    gain: str = BINARY
    empty: str = ZERO
    range: str = "0 to 1"
    ties: str = "The stored order decides: descending score, then document id. It is never sorted again."
    better: Literal["higher", "lower"] = "higher"
    greatest: float = 1.0
    formula: Formula | None = None
    needs_cutoff: bool = False


def _reciprocal_rank(graded: GradedRankings, cutoff: int | None) -> Values:
    return np.where(graded.read_until(graded.sums.hits, cutoff) > 0, 1.0 / graded.sums.first_relevant, 0.0)


def _judged(graded: GradedRankings, cutoff: int | None) -> Values:
    """Return the judged share of the documents present: a short ranking does not count as unjudged."""
    seen = graded.lengths if cutoff is None else np.minimum(graded.lengths, cutoff)
    return share(graded.read_until(graded.sums.judged, cutoff), seen)


def _first_relevant(graded: GradedRankings, cutoff: int | None) -> Values:
    """Return the rank of the first relevant document; NaN without one, because any number could be read as a rank."""
    return np.where(graded.read_until(graded.sums.hits, cutoff) > 0, graded.sums.first_relevant, np.nan)


def _ideal(graded: GradedRankings, cutoff: int | None) -> Values:
    """Return the DCG of the ideal ranking at the cutoff; of the whole ranking without a cutoff or past its end."""
    if cutoff == 0:
        return np.zeros(len(graded.lengths))
    width = graded.ideal_dcg.shape[-1]
    return graded.ideal_dcg[:, (width if cutoff is None else min(cutoff, width)) - 1]


DEFINITIONS: dict[str, Definition] = {
    "P": Definition(
        "P@k",
        "Precision",
        "The share of the first k ranks with a relevant document. Shorter rankings are divided by k too.",
        f"{TREC}, P_k",
        range="0 to 1; at most (relevant documents) / k",
        formula=lambda graded, cutoff: share(graded.read_until(graded.sums.hits, cutoff), cutoff or 0),
        needs_cutoff=True,
    ),
    "R": Definition(
        "R@k",
        "Recall",
        "The share of the query's relevant documents that are in the first k ranks. Unresolved judgments "
        "count as relevant documents that no ranking contains.",
        f"{TREC}, recall_k",
        range="0 to 1; at most k / (relevant documents)",
        formula=lambda graded, cutoff: share(graded.read_until(graded.sums.hits, cutoff), graded.n_relevant),
        needs_cutoff=True,
    ),
    "nDCG": Definition(
        "nDCG@k",
        "Normalised discounted cumulative gain",
        "The sum of grade / log2(rank + 1) over the first k ranks, divided by that of the best possible ranking of "
        "all judged documents. Without @k, over the whole ranking.",
        f"Järvelin and Kekäläinen 2002, as {TREC}, ndcg_cut_k and ndcg",
        gain="Linear: the grade itself. A negative grade and a document without judgment gain 0.",
        formula=lambda graded, cutoff: share(graded.read_until(graded.sums.dcg, cutoff), _ideal(graded, cutoff)),
    ),
    "AP": Definition(
        "AP@k",
        "Average precision",
        "The sum of the precisions at the place of each relevant document found in the first k ranks, divided by the "
        "number of all relevant documents. Without @k, over the whole ranking. Its mean over queries is MAP.",
        f"{TREC}, map_cut_k and map",
        formula=lambda graded, cutoff: share(graded.read_until(graded.sums.precisions, cutoff), graded.n_relevant),
    ),
    "RR": Definition(
        "RR@k",
        "Reciprocal rank",
        "1 / the rank of the first relevant document; 0 without one in the first k ranks. Without @k, in the "
        "whole ranking. Its mean over queries is MRR.",
        f"{TREC}, recip_rank",
        formula=_reciprocal_rank,
    ),
    "Success": Definition(
        "Success@k",
        "Success",
        "1 if at least one relevant document is in the first k ranks, otherwise 0. Its mean is the share of queries "
        "that found one.",
        f"{TREC}, success_k",
        range="0 or 1",
        formula=lambda graded, cutoff: (graded.read_until(graded.sums.hits, cutoff) > 0).astype(np.float64),
        needs_cutoff=True,
    ),
    "Judged": Definition(
        "Judged@k",
        "Judged",
        "The share of the first k documents that have a judgment of any grade. A shorter ranking is divided by its "
        "length. This share shows how far other values can be trusted, not how good the run is.",
        "ir_measures, Judged@k",
        gain="None: any grade counts, negative ones too.",
        empty="0 if a query has no judgments or no results.",
        formula=_judged,
    ),
    "Hits": Definition(
        "Hits@k",
        "Hits",
        "The number of relevant documents in the first k ranks. Without @k, in the whole ranking.",
        f"a count; {TREC}, num_rel_ret",
        range="0 to the smaller of k and the number of relevant documents",
        greatest=math.inf,
        formula=lambda graded, cutoff: graded.read_until(graded.sums.hits, cutoff),
    ),
    "FirstRelevant": Definition(
        "FirstRelevant@k",
        "Rank of the first relevant document",
        "The rank of the first relevant document, from 1. Its mean covers only queries with a relevant document in "
        "the first k ranks (without @k, at any rank): read it with Success@k.",
        "1 / RR",
        empty="No value, and left out of the mean, if no relevant document is found.",
        range="1 to k",
        better="lower",
        greatest=math.inf,
        formula=_first_relevant,
    ),
}

BY_LIBRARY = Definition(
    "",
    "",
    "",
    "ir_measures; it is given our ranks as strictly falling scores",
    gain="As the library ir_measures defines it; relevant is a grade above 0 unless the name says rel=. ERR gains "
    "(2^grade − 1) / 16 and has five decimals.",
    empty="0 where the library has no value. The mean is the plain mean over queries, also of what the library adds "
    "up.",
    range="as its definition has it",
    greatest=math.inf,
)
