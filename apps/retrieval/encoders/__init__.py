"""Vectors of texts: encoders and caches of their vectors. `registry` has the kinds of encoder.

Imports models and fingerprints; `search`, building and rerankers import it.
"""

from apps.retrieval.encoders.base import Cut, Encoder, EncoderError, TokenEncoder
from apps.retrieval.encoders.registry import load_encoder

__all__ = ["Cut", "Encoder", "EncoderError", "TokenEncoder", "load_encoder"]
