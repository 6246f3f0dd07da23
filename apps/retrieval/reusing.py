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
from benchbench.names import checked_name

BUILT: dict[str, Any] = {"lexical": False, "vector_source": ""}  # what indexes of ingredients have besides


@dataclass(frozen=True)
class Ingredients:
    """What an index is made of, apart from its documents. It is searched by vectors only."""

    strategy: str
    chunk_parameters: dict[str, Any]
    encoder: str
    llm: str = ""
    llm_parameters: dict[str, Any] = field(default_factory=dict)


def index_of(collection: Collection, made_of: Ingredients, *, name: str, owner: Any = None) -> Index:
    """Return the collection's index of these ingredients and its documents as they are now: a ready one, else the
    newest that was begun, of those that `owner` sees; else a new one called `name`. `build_index` makes the latter two
    searchable.

    Raises what `create_index` does.
    """
    strategy = get_strategy(made_of.strategy)
    parameters = strategy.check(made_of.chunk_parameters)
    if strategy.requires_llm:
        made_of = replace(made_of, llm_parameters=checked_llm(made_of.llm_parameters))
    there = equal_indexes(collection, owner, **BUILT, **{**asdict(made_of), "chunk_parameters": parameters}).first()
    return there or create_index(
        collection,
        name=name,
        encoder=made_of.encoder,
        chunk_parameters=parameters,
        strategy=made_of.strategy,
        lexical=False,
        llm=made_of.llm,
        llm_parameters=made_of.llm_parameters,
        owner=owner,
    )


@transaction.atomic
def unavailable_index(
    collection: Collection, made_of: Ingredients, *, name: str, reason: str, owner: Any = None
) -> Index:
    """Return an index that has failed for `reason`, since an ingredient is not to be had here; one for all times.

    So that what was to be searched by it keeps its place, and can be had by `build_index` once the ingredient is there.
    """
    locked = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    equal = equal_indexes(locked, owner, **BUILT, **asdict(made_of))
    there = equal.exclude(status=Index.Status.READY).first()  # runs stand on a ready one
    index = there or Index(
        collection=locked,
        name=checked_name(name, "index"),
        version=next_version(locked, name),
        lexical=False,
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
