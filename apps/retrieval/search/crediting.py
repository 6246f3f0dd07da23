"""Credit: the summary of a tree through which a chunk came into a list, which the list does not record."""

from collections.abc import Mapping

from apps.retrieval.encoders.vector_cache import find_vectors, load_query_space
from apps.retrieval.fingerprints import hash_text
from apps.retrieval.models import Chunk, Index
from apps.retrieval.search.vectors import load_vectors
from apps.retrieval.strategies import TREES
from benchbench.ir.compression import truncate
from benchbench.ir.ranking import score_pairs


def find_summaries(
    index: Index, text: str, scores: Mapping[int, float], *, dimensions: int | None = None
) -> dict[int, Chunk]:
    """Return the summaries through which chunks of a dense list were found for the query `text`, by their keys.

    `scores` are those of the list, by the keys of chunks. A chunk has the score of the summary that found it, and equal
    pairs have bitwise equal scores, so equal scores identify the summary. Chunks found by themselves are left out; so
    are all if the query's vector is not cached. `dimensions` is the number of dimensions compared, by default all.
    """
    if index.strategy not in TREES or index.dimension is None or index.chunk_set is None:
        return {}
    key = hash_text(text)
    cached = find_vectors(load_query_space(index), [key]).get(key)
    if cached is None:
        return {}
    query = cached.vector
    above = _load_ancestors(set(scores))
    nodes = Chunk.objects.in_bulk(list(scores.keys() | set().union(*above.values())))
    ids, vectors = load_vectors(index.vector_table, index.dimension, sorted(c.position for c in nodes.values()))
    if dimensions is not None:
        vectors = truncate(vectors, dimensions, kind="chunk")
        (query,) = truncate(query[None], dimensions, kind="query")
    node_scores = dict(zip(ids.tolist(), score_pairs(vectors, query).tolist(), strict=True))
    behind: dict[int, Chunk] = {}
    for chunk, score in scores.items():
        if node_scores[nodes[chunk].position] != score:
            sources = [node for node in sorted(above[chunk]) if node_scores[nodes[node].position] == score]
            behind |= {chunk: nodes[sources[0]]} if sources else {}
    return behind


def _load_ancestors(chunks: set[int]) -> dict[int, set[int]]:
    """Return the keys of all summaries above each chunk, with one query per level."""
    links = Chunk.children.through.objects
    above: dict[int, set[int]] = {chunk: set() for chunk in chunks}
    on_level = {chunk: {chunk} for chunk in chunks}
    while any(on_level.values()):
        parents: dict[int, set[int]] = {}
        for parent, child in links.filter(to_chunk__in=set().union(*on_level.values())).values_list(
            "from_chunk", "to_chunk"
        ):
            parents.setdefault(child, set()).add(parent)
        for chunk, keys in on_level.items():
            on_level[chunk] = set().union(*(parents.get(key, set()) for key in keys))
            above[chunk] |= on_level[chunk]
    return above
