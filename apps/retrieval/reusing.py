"""Indexes found by their parts, so that none is built twice."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.db import transaction
from django.db.models import Case, Q, QuerySet, Value, When

from apps.collections.models import Collection
from apps.retrieval.indexing import create_index, next_version
from apps.retrieval.llms.servers import checked_llm
from apps.retrieval.models import Index
from apps.retrieval.strategies import get_strategy
from benchbench.access import usable
from benchbench.database.rereading import read_again
from benchbench.names import checked_name


@dataclass(frozen=True)
class Ingredients:
    """What an index is made of, apart from its documents; searched by vectors alone, unless it is `lexical` too."""

    strategy: str
    chunk_parameters: dict[str, Any]
    encoder: str
    llm: str = ""
    llm_parameters: dict[str, Any] = field(default_factory=dict)
    lexical: bool = False


def complete(made_of: Ingredients) -> Ingredients:
    """Return the ingredients with every parameter. Raises StrategyError, ChunkingError, LLMError."""
    strategy = get_strategy(made_of.strategy)
    return replace(
        made_of,
        chunk_parameters=strategy.check(made_of.chunk_parameters),
        llm_parameters=checked_llm(made_of.llm_parameters) if strategy.requires_llm else made_of.llm_parameters,
    )


def index_there(collection: Collection, made_of: Ingredients, *, owner: Any = None) -> Index | None:
    """Return the collection's index of these complete ingredients and its documents as they are now: a ready one, else
    the newest that was begun, of those that `owner` sees; None where there is none."""
    return equal_indexes(collection, owner, **asdict(made_of), vector_source="").first()


def index_of(collection: Collection, made_of: Ingredients, *, name: str, owner: Any = None) -> Index:
    """Return the index that is there, or a new one called `name`. `build_index` makes it searchable.

    Raises what `complete` and `create_index` do.
    """
    made_of = complete(made_of)
    there = index_there(collection, made_of, owner=owner)
    return there or create_index(collection, name=name, owner=owner, **asdict(made_of))


@transaction.atomic
def unavailable_index(
    collection: Collection, made_of: Ingredients, *, name: str, reason: str, owner: Any = None
) -> Index:
    """Return an index that has failed for `reason`, since an ingredient is not to be had here; one for all times.

    So that what was to be searched by it keeps its place, and can be had by `build_index` once the ingredient is there.
    """
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)
    equal = equal_indexes(locked, owner, **asdict(made_of), vector_source="")
    there = equal.exclude(status=Index.Status.READY).first()  # runs stand on a ready one
    index = there or Index(
        collection=locked,
        name=checked_name(name, "index"),
        version=next_version(locked, name),
        owner=owner,
        **asdict(made_of),
    )
    index.status, index.error = Index.Status.FAILED, reason
    index.save()
    return index


def equal_indexes(collection: Collection, owner: Any, **made_of: Any) -> QuerySet[Index]:
    """Return the indexes of these fields that hold the collection's documents or none yet, a ready one first.

    The newest of several comes first. Of those that `owner` sees: whoever else may see the collection has indexes of
    their own.
    """
    current = Q(chunk_set=None) | Q(chunk_set__collection_fingerprint=collection.fingerprint)
    ready_first = Case(When(status=Index.Status.READY, then=Value(0)), default=Value(1))
    same = Index.objects.filter(current, collection=collection, **made_of)
    return usable(same, owner).order_by(ready_first, "-version")
