"""Definitions of the measures in words, for pages; docs/measures.md has the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from benchbench.ir.measures import library

if TYPE_CHECKING:
    from benchbench.ir.measures.measure import Measure


BINARY = "A document is relevant when its grade is above 0; how far above makes no difference."
ZERO = "0 without relevant judgments and without results."
TREC = "trec_eval"


@dataclass(frozen=True, slots=True)
class Definition:
    """One measure told to its reader. In the sentences k stands for the cutoff; `greatest` bounds its values."""

    written: str
    title: str
    meaning: str
    source: str
    gain: str = BINARY
    empty: str = ZERO
    range: str = "0 to 1"
    ties: str = "The stored order decides: score falling, then document id. It is never sorted again."
    better: Literal["higher", "lower"] = "higher"
    greatest: float = 1.0


DEFINITIONS: dict[str, Definition] = {
    "P": Definition(
        "P@k",
        "Precision",
        "The share of the first k places that hold a relevant document. A ranking shorter than k still divides by k.",
        f"{TREC}, P_k",
        range="0 to 1; at most (relevant documents) / k",
    ),
    "R": Definition(
        "R@k",
        "Recall",
        "The share of the query's relevant documents that stand in the first k places. Relevant documents that no "
        "ranking can hold, because their judgment is unresolved, count among them.",
        f"{TREC}, recall_k",
        range="0 to 1; at most k / (relevant documents)",
    ),
    "nDCG": Definition(
        "nDCG@k",
        "Normalised discounted cumulative gain",
        "The sum of grade / log2(rank + 1) over the first k places, divided by that of the best possible ranking of "
        "all judged documents. Without @k, over the whole ranking.",
        f"Järvelin and Kekäläinen 2002, as {TREC}, ndcg_cut_k and ndcg",
        gain="Linear: the grade itself. A negative grade and a document without judgment gain 0.",
    ),
    "AP": Definition(
        "AP@k",
        "Average precision",
        "The sum of the precisions at the place of each relevant document found in the first k places, divided by the "
        "number of all relevant documents. Without @k, over the whole ranking. Its mean over queries is MAP.",
        f"{TREC}, map_cut_k and map",
    ),
    "RR": Definition(
        "RR@k",
        "Reciprocal rank",
        "1 / the rank of the first relevant document; 0 where there is none in the first k places. Without @k, in the "
        "whole ranking. Its mean over queries is MRR.",
        f"{TREC}, recip_rank",
    ),
    "Success": Definition(
        "Success@k",
        "Success",
        "1 where at least one relevant document stands in the first k places, otherwise 0. Its mean is the share of "
        "queries that found something.",
        f"{TREC}, success_k",
        range="0 or 1",
    ),
    "Judged": Definition(
        "Judged@k",
        "Judged",
        "The share of the first k documents that have a judgment, whatever its grade. A ranking shorter than k divides "
        "by its length. It does not say how good a run is, but how far its other values can be trusted.",
        "ir_measures, Judged@k",
        gain="None: any grade counts, negative ones too.",
        empty="0 without results; a query without judgments has 0.",
    ),
    "Hits": Definition(
        "Hits@k",
        "Hits",
        "How many relevant documents stand in the first k places. Without @k, in the whole ranking.",
        f"a count; {TREC}, num_rel_ret",
        range="0 to the smaller of k and the number of relevant documents",
        greatest=math.inf,
    ),
    "FirstRelevant": Definition(
        "FirstRelevant@k",
        "Rank of the first relevant document",
        "The place at which a reader meets the first relevant document, from 1. Its mean is over the queries that "
        "found one in the first k places, or without @k anywhere; read it beside Success@k.",
        "1 / RR",
        empty="No value where none is found, which includes no relevant judgments and no results: left out of the "
        "mean.",
        range="1 to k",
        better="lower",
        greatest=math.inf,
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


def definition_of(measure: Measure) -> Definition:
    """The definition of `measure` under its own name; k in the sentences stands for its cutoff."""
    if not measure.is_ours:
        title, sentence = library.summary(str(measure))
        return replace(BY_LIBRARY, written=str(measure), title=title, meaning=sentence)
    return replace(DEFINITIONS[measure.name], written=str(measure))
