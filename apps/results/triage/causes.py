"""Causes of lost documents in words: a sentence for each, and the remedy."""

from dataclasses import dataclass

from apps.results.triage.triaging import RunLosses
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.triage import Loss

ANY = "any"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of loss: `name` for lists, and the `remedy` in a sentence; `find_remedy` adapts it to a configuration."""

    name: str
    remedy: str


CAUSES = {
    Loss.NOT_IN_COLLECTION: Cause(
        "Not in the collection", "Import the document, resolve the mapping, and build a new version of the index."
    ),
    Loss.UNRESOLVED: Cause(
        "Judgment not resolved", "Correct the reference or its document, then resolve the mapping again."
    ),
    Loss.NOT_INDEXED: Cause("Not indexed", "Check that the document has text, then build a new version of the index."),
    Loss.FILTERED: Cause(
        "Excluded by a filter", "Correct the query's filter, or the document's metadata, or the filter share."
    ),
    Loss.EXCLUDED_SELF: Cause(
        "The query’s document",
        "Remove the judgment of this document, or run without exclude_self.",
    ),
    Loss.NO_SHARED_WORD: Cause("No word in common", "Use hybrid search, which also uses vectors."),
    Loss.BEYOND_WINDOW: Cause(
        "Beyond the encoder’s window",
        "Build an index with fit_encoder or smaller chunks, or use hybrid search.",
    ),
    Loss.NOT_REACHED: Cause("Not reached by the strategy", "Raise doc_top_k or section_top_k, or use a flat index."),
    Loss.MISSED: Cause("Missed by approximate search", "Use exact search."),
    Loss.BELOW_FIRST_STAGE: Cause("Below first-stage depth", "Raise candidates."),
    Loss.BELOW_FUSED: Cause("Below fused depth", "Raise candidates, or give more weight to the search that found it."),
    Loss.BELOW_RERANK_DEPTH: Cause("Below rerank depth", "Raise rerank_depths."),
    Loss.CUT_BY_THRESHOLD: Cause("Cut by the threshold", "Lower the score threshold."),
    Loss.DEMOTED_BY_RERANKER: Cause("Demoted by the reranker", "Try another reranker, or smaller rerank_depths."),
    Loss.CUT_BY_TOP_K: Cause("Cut by top_k", "Raise top_k_values."),
    Loss.BELOW_K: Cause("Ranked too low", "Use a reranker or, in hybrid search, change the fusion weights."),
}


def find_remedy(loss: Loss, configuration: Configuration) -> str:
    """Return the remedy for a loss in a run of this configuration."""
    if configuration.uses_vectors and (limits := " or ".join(Ann.parse(configuration.ann).list_limits())):
        if loss == Loss.MISSED:
            return f"Raise {limits} of {configuration.ann}, or use exact search."
        if loss == Loss.BELOW_FIRST_STAGE:
            return f"Raise candidates, and with them {limits} of {configuration.ann}."
    if loss == Loss.BELOW_K and configuration.use_reranker:
        return "Neither the search nor the reranker ranks it high: try other models."
    return CAUSES[loss].remedy


def describe_loss(loss: Loss, configuration: Configuration, *, k: int, before: int | None, rank: int | None) -> str:
    """Return a sentence on the loss of one document for its query.

    `before`: its rank in the last list before the stage that lost it, if any. `rank`: its rank in the run.
    """
    candidates = f"{configuration.effective_candidates:,}"
    was = f"; it was at rank {before:,}" if before else ""
    sentences = {
        Loss.NOT_IN_COLLECTION: "The document was not in the collection.",
        Loss.UNRESOLVED: "The judgment could not be resolved to one document.",
        Loss.NOT_INDEXED: "The index has no chunk of the document.",
        Loss.FILTERED: "A filter, of the query or of the run, excludes it.",
        Loss.EXCLUDED_SELF: "Its id is the query’s key, and the benchmark excludes such documents (exclude_self).",
        Loss.NO_SHARED_WORD: "It shares no term with the query: lexical search reads both by the same analyzer.",
        Loss.BEYOND_WINDOW: "Its passage with words of the query begins after what the encoder reads of the chunk.",
        Loss.NOT_REACHED: "The strategy of the index did not select its document or its section.",
        Loss.MISSED: f"Exact search has it among its first {candidates} chunks, but {configuration.ann} missed it.",
        Loss.BELOW_FIRST_STAGE: f"No search found it among its first {candidates} chunks"
        + (f"; its best rank is {before:,}." if before else "."),
        Loss.BELOW_FUSED: f"Fusion did not keep it among its first {candidates} chunks{was}.",
        Loss.BELOW_RERANK_DEPTH: f"The reranker read only the first {configuration.effective_rerank_depth:,} chunks"
        f"{was}.",
        Loss.CUT_BY_THRESHOLD: f"Its score does not reach the threshold of {configuration.score_threshold}{was}.",
        Loss.DEMOTED_BY_RERANKER: f"The reranker moved it from rank {before} "
        + (f"to {rank:,}." if rank else "out of the results."),
        Loss.CUT_BY_TOP_K: f"It is not among the {configuration.top_k:,} chunks that the run returns{was}.",
        Loss.BELOW_K: f"It is at rank {rank or 0:,}, below the first {k}.",
    }
    return sentences[loss]


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One way in which a run lost documents: "demoted by the reranker: 31 documents in 28 queries"."""

    cause: Loss
    name: str
    remedy: str
    documents: int
    queries: int


def count_causes(losses: RunLosses, configuration: Configuration) -> list[CauseRow]:
    """Return a row for each cause of loss of a run, in the order of the stages."""
    return [
        CauseRow(loss, CAUSES[loss].name, find_remedy(loss, configuration), counted.documents, counted.queries)
        for loss, counted in losses.tally.items()
    ]


def read_cause(text: str) -> Loss | str:
    """Return the cause in a page's query string: a Loss, ANY of them, or "" for no filter."""
    return text if text == ANY else Loss(text) if text in list(Loss) else ""
