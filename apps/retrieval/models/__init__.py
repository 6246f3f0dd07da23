"""Models of indexes, their chunks, and the caches of answers and vectors."""

from apps.retrieval.models.caches import CachedVector, LLMAnswer, VectorSpace
from apps.retrieval.models.indexes import Chunk, ChunkSet, CutChunk, Index, Ingredients, LexicalIndex, LexicalPiece

__all__ = [
    "CachedVector",
    "Chunk",
    "ChunkSet",
    "CutChunk",
    "Index",
    "Ingredients",
    "LLMAnswer",
    "LexicalIndex",
    "LexicalPiece",
    "VectorSpace",
]
