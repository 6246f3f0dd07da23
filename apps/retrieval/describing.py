"""The description of an index, independent of its site and owner."""

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery

from apps.operations.models import Operation
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.strategies import TREES, get_strategy
from benchbench.reading.strict_json import attributes

UNKNOWN = "unknown"


def describe_identity(index: Index) -> dict[str, object]:
    """Return the parts of a ready index and `content`, one hash over all of them except its name.

    Indexes of equal `content` have the same chunks and vectors on any site. `Index.fingerprint` identifies an index of
    this site. An encoder named by a path must be at the same path. The model revision of imported vectors is unknown,
    so `query_encoder_revision` is UNKNOWN: queries without a vector in the file are encoded by the local revision,
    which cannot be checked. The `summaries` of a tree are a hash of their texts, since a language model may write
    others elsewhere.
    """
    identity = {"name": index.name, "version": index.version, **_collect_facts(index), "content": hash_content(index)}
    if index.vector_source and index.encoder:
        identity["query_encoder_revision"] = UNKNOWN
    return identity


def hash_content(index: Index) -> str:
    """Return the hash over the parts of a ready index."""
    assert index.chunk_set is not None
    return fingerprint(collection=index.chunk_set.collection_fingerprint, **_collect_facts(index))


def _collect_facts(index: Index) -> dict[str, object]:
    lexical = index.lexical_index
    return {
        "strategy": index.strategy,
        "chunk_parameters": get_strategy(index.strategy).check(index.chunk_parameters),
        **attributes(index, "encoder", "encoder_revision", "vector_source"),
        **index.encoder_parameters.list_changes(),
        "lexical": lexical and {"engine": lexical.engine, "parameters": lexical.parameters},
        **attributes(index, "llm", "llm_parameters"),
        **({"summaries": _hash_summaries(index.chunk_set)} if index.strategy in TREES and index.chunk_set else {}),
    }


def _hash_summaries(chunk_set: ChunkSet) -> str:
    texts = chunk_set.chunks.filter(level__gt=0).order_by("position").values_list("level", "text_hash")
    return fingerprint(summaries=[list(text) for text in texts])


def annotate_operation(indexes: QuerySet[Index]) -> QuerySet[Index]:
    """Annotate indexes with `operation_uuid`, the last operation that built each, or None."""
    newest = Operation.objects.filter(kind=Operation.Kind.INDEX, subject_id=OuterRef("pk")).order_by("-created_at")
    return indexes.annotate(operation_uuid=Subquery(newest.values("pk")[:1])).select_related(
        "chunk_set", "lexical_index"
    )


def list_encoders(indexes: QuerySet[Index]) -> list[str]:
    """Return the default encoder and those of the ready ones of `indexes`, by name, so without mistyped ones."""
    built = indexes.filter(status=Index.Status.READY).exclude(encoder="").order_by("encoder")
    return list(dict.fromkeys([settings.BENCHBENCH_DEFAULT_MODEL, *built.values_list("encoder", flat=True).distinct()]))
