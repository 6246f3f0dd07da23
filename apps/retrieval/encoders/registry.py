"""Encoders by name: a prefix names a kind. Any other name is that of a model of sentence-transformers."""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from apps.retrieval.encoders.base import Encoder
from apps.retrieval.encoders.keyword import KeywordEncoder
from apps.retrieval.encoders.model_files import load_model
from apps.retrieval.encoders.sentence_transformer import SentenceTransformerEncoder, TransformerEncoder

RESIDENT_ENCODERS = 4

# Kinds of encoder by the prefix of their names.
ENCODERS: dict[str, Callable[[str], Encoder]] = {KeywordEncoder.PREFIX: KeywordEncoder}


@lru_cache(maxsize=RESIDENT_ENCODERS)
def load_encoder(name: str) -> Encoder:
    """Return the encoder called `name`, resident in this process. Raises ModelError, EncoderError."""
    for prefix, make in ENCODERS.items():
        if name.startswith(prefix):
            return make(name)
    model, revision = load_model("SentenceTransformer", name)
    kind = TransformerEncoder if hasattr(model[0], "auto_model") else SentenceTransformerEncoder
    encoder = kind(name, model, revision)
    with suppress(Exception):  # whatever is wrong with it, its first text says
        encoder.embed_batch(["warm-up"])  # the first pass prepares what others use, which is no part of what is timed
    return encoder
