"""RAPTOR: a tree of summaries of clusters of chunks (Sarthi et al., 2024)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.collections.records import DocumentRecord
from apps.retrieval.strategies.base import Answer, Parameters, Piece, SearchQuery, StrategyError, TreeStrategy, View
from apps.retrieval.strategies.flat import cut_windows
from apps.retrieval.strategies.lod import mask_level
from benchbench.ir.chunking import find_first_sentences
from benchbench.ir.records import Calls, Mask, ScoredList
from benchbench.ir.trees import Members, explain_missing, find_clusters, search_collapsed, traverse_tree

PROMPT = "Write a summary of the following, including as many key details as possible:\n\n{texts}\n\nSummary:"
EXTRACT = 1000  # characters of an extractive summary, as many as common encoders read


class RaptorStrategy(TreeStrategy):
    """The strategies `raptor` and `raptor_extractive`. Chunks are cut section by section.

    Each layer above summarises clusters of the layer below, up to `max_layers` or until a layer would not shrink. The
    texts of a cluster have at most `context` characters in total; a longer cluster is split. Results are always chunks.
    A collapsed search ranks all levels as one list: a summary yields the chunks below it, or nothing with
    `credit: none`. A tree search descends through the best `layer_top_k` summaries of each layer.

    `raptor` asks a language model for summaries. `raptor_extractive` takes the first sentences of the texts instead.
    """

    def check(self, parameters: Parameters) -> dict[str, object]:
        complete = super().check(parameters)
        if complete["size"] > complete["context"]:
            raise StrategyError(
                f"A chunk of {complete['size']:,} characters does not fit into a context of {complete['context']:,}.",
                field="context",
            )
        if complete["search"] == "tree" and complete["credit"] == "none":
            raise StrategyError(
                "credit must not be none in a tree search, which finds chunks only by summaries.", field="credit"
            )
        if missing := explain_missing(complete["reduction"]):
            raise StrategyError(f"{missing[0].upper()}{missing[1:]}.", field="reduction")
        return complete

    def cut_chunks(self, document: DocumentRecord, parameters: Parameters) -> list[Piece]:
        return cut_windows(document, parameters)

    def find_clusters(
        self, vectors: NDArray[np.float32], lengths: NDArray[np.int64], level: int, parameters: Parameters
    ) -> list[Members]:
        if level > parameters["max_layers"]:
            return []
        mixture = {key: parameters[key] for key in ("seed", "reduction")}
        context, threshold = parameters["context"], parameters["cluster_threshold"]
        return find_clusters(vectors, lengths, limit=context, threshold=threshold, **mixture)

    def summarise(self, texts: Sequence[str], ask: Callable[[str], str]) -> str:
        if self.requires_llm:
            return ask(PROMPT.format(texts="\n\n".join(texts)))
        return " ".join(find_first_sentences(text, limit=EXTRACT // len(texts)) for text in texts)

    def search(self, queries: Sequence[SearchQuery], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        if parameters["search"] == "tree":
            searched = [
                traverse_tree(
                    view, _build_search(view, query), query.mask, depth, layer_top_k=parameters["layer_top_k"]
                )
                for query in queries
            ]
            return [Answer(ranked, Calls(embed=1)) for ranked in searched]
        masks = [q.mask for q in queries] if parameters["credit"] == "leaves" else mask_level(view, queries, 0)
        nodes = view.find_nearest(np.stack([query.vector for query in queries]), depth, masks)
        return [
            Answer(search_collapsed(view, near, _build_search(view, query), mask, depth), Calls(embed=1))
            for query, near, mask in zip(queries, nodes, masks, strict=True)
        ]


def _build_search(view: View, query: SearchQuery) -> Callable[[int, Mask | None], ScoredList]:
    return lambda depth, mask: view.find_nearest(query.vector[None], depth, [mask])[0]
