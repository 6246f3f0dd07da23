"""Creation of indexes: declare an index, find an equal one, and build it on the queue."""

from collections.abc import Mapping
from dataclasses import asdict, replace

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Max, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from apps.collections.models import Collection
from apps.operations.launching import start_operation
from apps.operations.models import Operation
from apps.retrieval.availability import require_available
from apps.retrieval.building import IndexingError, require_chunk_limit
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.llms.servers import complete_llm
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.strategies import get_strategy
from apps.retrieval.strategies.base import FIT
from benchbench.access import usable
from benchbench.database.failures import read_again, refresh
from benchbench.errors import ConflictError
from benchbench.ir.encoding import LONGEST_PROMPT, PRECISIONS, EncoderParameters
from benchbench.names import check_name
from benchbench.reading.objects import format_value
from benchbench.texts.storable import is_storable


class NoTextError(IndexingError):
    """The collection has no text to index."""

    status = 409


LONGEST_MODEL = 500  # characters of a model's name


@transaction.atomic
def create_index(
    collection: Collection,
    *,
    name: str,
    encoder: str = "",
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    precision: str = "float32",
    chunk_parameters: Mapping[str, object] | None = None,
    strategy: str = "flat",
    lexical: bool = True,
    llm: str = "",
    llm_parameters: Mapping[str, object] | None = None,
    owner: User | None = None,
) -> Index:
    """Declare an index of a collection, the next version under its name; `build_index` makes it searchable.

    `chunk_parameters` are the strategy's (for flat, none means whole documents). Without an `encoder` it is searched by
    words only, unless vectors are imported into it. A prompt None is that of the model's configuration. `llm` is the
    model that the strategy uses, on the server named in `llm_parameters` (`llms.servers`). Models are checked when it
    is built. Raises IndexingError, also above BENCHBENCH_MAX_CHUNKS, UnavailableError for an unavailable strategy or
    provider, StrategyError and ChunkingError.
    """
    name = check_name(name, "index")
    llm_fields = {"llm": llm.strip(), "llm_parameters": dict(llm_parameters or {})}
    index_fields = {"encoder": encoder.strip(), "strategy": strategy, "lexical": lexical}
    parameters = EncoderParameters(query_prompt, document_prompt, precision)
    require_parameters(encoder.strip(), parameters)
    declared = Index(name=name, owner=owner, **index_fields, **asdict(parameters), **llm_fields)
    for field in ("encoder", "llm"):
        if len(getattr(declared, field)) > LONGEST_MODEL:
            raise IndexingError(f"The name of the {field} has more than {LONGEST_MODEL} characters.", field=field)
    require_available(declared)
    if get_strategy(strategy).requires_llm:
        declared.llm_parameters = complete_llm(declared.llm_parameters)
    elif declared.llm or declared.llm_parameters:
        raise IndexingError(f"The strategy {strategy} uses no language model: leave it out.", field="llm")
    declared.chunk_parameters = get_strategy(strategy).check(chunk_parameters or {})
    require_searchable(name, strategy, declared.encoder, lexical)
    if FIT in declared.chunk_parameters and not declared.encoder:
        raise IndexingError(f"{FIT} divides what an encoder would not read: name one, or leave it out.", field=FIT)
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)  # numbers the versions
    if locked.kind == Collection.Kind.EXTERNAL:
        raise NoTextError(f'The collection "{locked}" holds only the ids of external runs, so it has no text to index.')
    if not locked.document_count:
        raise NoTextError(f'The collection "{locked}" has no documents to index; import some first.')
    require_chunk_limit(locked, strategy, declared.chunk_parameters)
    declared.collection, declared.version = locked, find_next_version(locked, name)
    declared.save(force_insert=True)
    return declared


def require_parameters(encoder: str, parameters: EncoderParameters) -> None:
    """Check that an encoder may have these prompts and this precision. Raises IndexingError."""
    changed = parameters.list_changes()
    if not changed:
        return
    field = next(iter(changed))
    if not encoder or encoder.startswith(tuple(ENCODERS)):
        subject = f"{encoder} reads" if encoder else "an index without an encoder has"
        raise IndexingError(f"Leave out the {field}: {subject} neither prompts nor a precision.", field=field)
    if parameters.precision not in PRECISIONS:
        raise IndexingError(
            f"{format_value(parameters.precision)} is not a precision: choose one of {', '.join(PRECISIONS)}.",
            field="precision",
        )
    for field in ("query_prompt", "document_prompt"):
        prompt = getattr(parameters, field) or ""
        if len(prompt) > LONGEST_PROMPT or not is_storable(prompt):
            raise IndexingError(f"The {field} must be a text of at most {LONGEST_PROMPT:,} characters.", field=field)


def require_searchable(name: str, strategy: str, encoder: str, lexical: bool) -> None:
    """Check that an index can be searched by vectors or words. Raises IndexingError."""
    if get_strategy(strategy).has_summaries and not encoder:
        raise IndexingError(f'The index "{name}" needs an encoder, because {strategy} searches by vectors.')
    if not (encoder or lexical):
        raise IndexingError(f'The index "{name}" needs an encoder or BM25.')


def find_next_version(collection: Collection, name: str) -> int:
    """Return the version number of the next index of that name. The collection must be locked."""
    versions = Index.objects.filter(collection=collection, name=name)
    return int(versions.aggregate(next=Coalesce(Max("version"), 0) + 1)["next"])


def find_or_start_build(index: Index, *, by: User | None = None) -> Operation:
    """Return the active operation that builds an index, such as that of an interrupted command, or start one.

    Raises the errors of `build_index`.
    """
    return Operation.active_on(index) or build_index(index, by=by)


@transaction.atomic
def build_index(index: Index, *, by: User | None = None) -> Operation:
    """Start the operation that builds an index. A failed build continues where it stopped.

    It counts against the quota of `by`, by default the index's owner. Raises ConflictError for a ready index, which
    never changes, and while it is being built; UnavailableError; QuotaError.
    """
    refresh(index, Index.objects.select_for_update(no_key=True))  # a deletion waits
    require_available(index, to_build=True)
    require_chunk_limit(index.collection, index.strategy, index.chunk_parameters)  # for the current documents
    if index.status == Index.Status.READY:
        raise ConflictError(f'The index "{index}" is ready and never changes; make a new version of it instead.')
    operation = start_operation(
        Operation.Kind.INDEX,
        subject_id=index.pk,
        by=by or index.owner,
        queue="gpu",
        batches=[({"part": "chunk"}, 1)],
        planned_seconds=_estimate_seconds(index),
    )
    Index.objects.filter(pk=index.pk).update(status=Index.Status.INDEXING, error="")
    refresh(index)
    return operation


def _estimate_seconds(index: Index) -> float | None:
    """Return the seconds of a build by the pace of the newest one with this encoder and strategy; None without one."""
    built = Index.objects.filter(status=Index.Status.READY, encoder=index.encoder, strategy=index.strategy)
    newest = built.order_by("-ready_at").values_list("stats", flat=True).first() or {}
    documents = int(newest.get("num_documents", 0))
    if not documents:
        return None
    return round(float(newest["duration_sec"]) / documents * index.collection.document_count, 1)


def complete(ingredients: Ingredients) -> Ingredients:
    """Return the ingredients with all parameters filled in. Raises StrategyError, ChunkingError, LLMError."""
    strategy = get_strategy(ingredients.strategy)
    return replace(
        ingredients,
        chunk_parameters=strategy.check(ingredients.chunk_parameters),
        llm_parameters=complete_llm(ingredients.llm_parameters)
        if strategy.requires_llm
        else ingredients.llm_parameters,
    )


def find_index(collection: Collection, ingredients: Ingredients, *, owner: User | None = None) -> Index | None:
    """Return the index with these complete ingredients over the current documents, visible to `owner`, or None.

    Prefers a ready index, then the newest.
    """
    return filter_equal_indexes(collection, owner, **asdict(ingredients), vector_source="").first()


def get_or_create_index(
    collection: Collection, ingredients: Ingredients, *, name: str, owner: User | None = None
) -> Index:
    """Return an existing index with these ingredients, or a new one called `name`, to be built by `build_index`.

    Raises the errors of `complete` and `create_index`.
    """
    ingredients = complete(ingredients)
    index = find_index(collection, ingredients, owner=owner)
    return index or create_index(collection, name=name, owner=owner, **asdict(ingredients))


@transaction.atomic
def create_failed_index(
    collection: Collection, ingredients: Ingredients, *, name: str, reason: str, owner: User | None = None
) -> Index:
    """Return an index marked as failed for `reason`, because an ingredient is unavailable here. Reuses an equal one.

    So runs that need it keep their place in a benchmark; `build_index` builds it once the ingredient is available.
    """
    locked = read_again(Collection.objects.select_for_update(no_key=True), collection.pk)
    equal = filter_equal_indexes(locked, owner, **asdict(ingredients), vector_source="")
    existing = equal.exclude(status=Index.Status.READY).first()  # a ready one may have runs
    index = existing or Index(
        collection=locked,
        name=check_name(name, "index"),
        version=find_next_version(locked, name),
        owner=owner,
        **asdict(ingredients),
    )
    index.status, index.error = Index.Status.FAILED, reason
    index.save()
    return index


def filter_equal_indexes(collection: Collection, owner: User | None, **ingredients: object) -> QuerySet[Index]:
    """Return indexes with these fields over the current documents or without chunks yet, ready ones first, then newest.

    Only those usable by `owner`: other users of the collection have their own indexes.
    """
    current = Q(chunk_set=None) | Q(chunk_set__collection_fingerprint=collection.fingerprint)
    ready_first = Case(When(status=Index.Status.READY, then=Value(0)), default=Value(1))
    same = Index.objects.filter(current, collection=collection, **ingredients)
    return usable(same, owner).order_by(ready_first, "-version")
