"""Availability of the parts of an index on this site. A store that is not searched here is refused by name."""

import re
from typing import Protocol

from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.models import Index
from apps.retrieval.stores import STORES
from apps.retrieval.strategies import STRATEGIES
from benchbench.errors import ConflictError

PROVIDERS = ("sbert", "sentence-transformers")  # of the models that `load_encoder` loads by their bare names
PREFIX = re.compile(r"[\w-]+:")


class UnavailableError(ConflictError):
    """An index by a strategy, a store or a provider that is not to be had here: its figures would be another's."""

    code = "not_here"


class MadeOf(Protocol):
    """What an index, or the plan of one, says of its parts."""

    @property
    def strategy(self) -> str: ...

    @property
    def store(self) -> str: ...

    @property
    def encoder(self) -> str: ...


def encoder_of(model: str, provider: str) -> str:
    """Return what an index calls the model of a provider: that of another one is never taken for ours."""
    return model if provider in PROVIDERS else f"{provider}:{model}"


def lack(made_of: MadeOf) -> str:
    """Say what of it is not to be had here, without a full stop; "" where all of it is.

    A model of ours is looked for when it is loaded.
    """
    prefix = PREFIX.match(made_of.encoder)
    provider = prefix[0].removesuffix(":") if prefix and prefix[0] not in ENCODERS else PROVIDERS[0]
    parts = (
        ("strategy", made_of.strategy, STRATEGIES),
        ("backend", made_of.store, STORES),
        ("provider", provider, PROVIDERS),
    )
    return "; ".join(
        f"the {noun} {name} is not known here, known are {', '.join(known)}"
        for noun, name, known in parts
        if name not in known
    )


def require_available(index: Index) -> None:
    """Raise UnavailableError where an index cannot be here what it says it is."""
    if lacking := lack(index):
        raise UnavailableError(f'The index "{index}" is not available here: {lacking}.')
