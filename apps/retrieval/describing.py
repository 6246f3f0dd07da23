"""Description of an index, without its site and its owner."""

from typing import Any

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from apps.operations.models import Operation
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.strategies import TREES, get_strategy
from benchbench.reading.strict_json import attributes

UNKNOWN = "unknown"


def identity_of(index: Index) -> dict[str, Any]:
    """Return what a ready index was made from and by, and `content`: one hash over all of that but its name.

    Indexes of equal `content` hold the same chunks and vectors, on whichever site they were built; `Index.fingerprint`
    names one index of this site. An encoder named by a path must lie at the same path. Of imported vectors
    `query_encoder_revision` says besides that nobody knows by which revision of the model they were made: queries that
    the file has no vectors of are encoded by the one that is here, which cannot be checked. Of a tree, `summaries` is
    a hash of their texts: a language model elsewhere may have written others.
    """
    told = {"name": index.name, "version": index.version, **_facts(index), "content": content_of(index)}
    if index.vector_source and index.encoder:
        told["query_encoder_revision"] = UNKNOWN
    return told


def content_of(index: Index) -> str:
    """Return the hash of what a ready index was made from and by."""
    assert index.chunk_set is not None
    return fingerprint(collection=index.chunk_set.collection_fingerprint, **_facts(index))


def _facts(index: Index) -> dict[str, Any]:
    lexical = index.lexical_index
    return {
        "strategy": index.strategy,
        "chunk_parameters": get_strategy(index.strategy).check(index.chunk_parameters),
        **attributes(index, "encoder", "encoder_revision", "vector_source"),
        "lexical": lexical and {"engine": lexical.engine, "parameters": lexical.parameters},
        **attributes(index, "llm", "llm_parameters"),
        **({"summaries": _summaries(index.chunk_set)} if index.strategy in TREES and index.chunk_set else {}),
    }


def _summaries(chunk_set: ChunkSet) -> str:
    texts = chunk_set.chunks.filter(level__gt=0).order_by("position").values_list("level", "text_hash")
    return fingerprint(summaries=[list(text) for text in texts])


def with_operation(indexes: QuerySet[Index]) -> QuerySet[Index]:
    """Annotate indexes with `operation_uuid`, the operation that last built each; None for one never built here."""
    newest = Operation.objects.filter(kind=Operation.Kind.INDEX, subject_id=OuterRef("pk")).order_by("-created_at")
    return indexes.annotate(operation_uuid=Subquery(newest.values("pk")[:1])).select_related("chunk_set")


def known_encoders(indexes: QuerySet[Index]) -> list[str]:
    """Return the default encoder and those that built one of `indexes`, by name: a mistyped one built none."""
    built = indexes.filter(status=Index.Status.READY).exclude(encoder="").order_by("encoder")
    return list(dict.fromkeys([settings.BENCHBENCH_DEFAULT_MODEL, *built.values_list("encoder", flat=True).distinct()]))
