"""Indexes of a collection: declare, build, look, delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.answers import ModelAnswer, TextOrNull, build_page
from apps.api.fields import Flag, PageQuery, StrictSerializer, Text, Validated
from apps.api.resource import Resource, delete, get, post
from apps.collections.models import Collection
from apps.engines.declarations import list_engines
from apps.retrieval.availability import describe_missing
from apps.retrieval.deleting import delete_index
from apps.retrieval.describing import annotate_operation, list_encoders
from apps.retrieval.encoders.admitting import PUBLISHED
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.rerankers import RERANKERS
from apps.retrieval.unread import list_index_warnings
from benchbench.access import visible
from benchbench.database.failures import read_again
from benchbench.ir.encoding import DEFAULT, LONGEST_PROMPT, PRECISIONS
from benchbench.ir.planning.ann import STORES
from benchbench.ir.planning.configuration import FUSIONS, LEXICAL, SEARCH_MODES
from benchbench.ir.planning.strategies import ASKING, STRATEGIES
from benchbench.names import MAX_LENGTH

ENCODER = rf"^(?:|(?:{'|'.join(ENCODERS)}).+|{PUBLISHED.pattern})$"
NO_NAME = (
    'encoder must be a model name such as "sentence-transformers/all-MiniLM-L6-v2". Only commands accept a folder of '
    "the server."
)
NO_STORE = (
    "An index has no store: PostgreSQL keeps its vectors. Name the store where it searches, in the matrix of a "
    'benchmark, as in "ann": ["faiss:hnsw"].'
)


def build_prompt(kind: str) -> Text:
    return Text(
        default=None,
        allow_null=True,
        allow_blank=True,
        trim_whitespace=False,
        max_length=LONGEST_PROMPT,
        help_text=f"Text before each {kind}; null is that of the model's configuration.",
    )


class NewIndex(StrictSerializer):
    """A new index of a collection."""

    name = Text(
        max_length=MAX_LENGTH,
        help_text="Short: it is part of the label of every run. "
        "A name that the collection already has makes its next version.",
    )
    encoder = Text(
        default=lambda: settings.BENCHBENCH_DEFAULT_MODEL,
        allow_blank=True,
        max_length=500,
        validators=[RegexValidator(ENCODER, NO_NAME)],
        help_text="A sentence-transformers model by its published name, looked for when the index is built. Left out: "
        "the site's default, the first of /indexes/options. Empty: lexical search only. keyword:apple,pear counts "
        "these words: for tests and for trying things out.",
    )
    query_prompt = build_prompt("query")
    document_prompt = build_prompt("document")
    precision = serializers.ChoiceField(
        list(PRECISIONS),
        default=DEFAULT.precision,
        help_text="Of the encoder's products; mixed: products in bfloat16, the rest in float32. Each is another space.",
    )
    lexical = Flag(default=True, help_text="For lexical and hybrid search: BM25 too.")
    strategy = serializers.ChoiceField(list(STRATEGIES), default="flat")
    chunk_parameters = serializers.DictField(
        default=dict,
        help_text="Of the strategy, sizes in characters. "
        + " ".join(f"{name}: {strategy.example}: {strategy.notes}." for name, strategy in STRATEGIES.items()),
    )
    llm = Text(
        default="",
        allow_blank=True,
        max_length=500,
        help_text=f"The language model that {' and '.join(ASKING)} ask, as its server calls it.",
    )
    llm_parameters = serializers.DictField(
        default=dict,
        help_text='{"provider": "ollama", "temperature": 0, "max_tokens": 500, "seed": 0, "cache": true}: provider is '
        "the name of a server of this site's settings, by default the first; cache false asks again for each query.",
    )

    def to_internal_value(self, data: object) -> Any:
        if isinstance(data, Mapping) and "store" in data:
            raise serializers.ValidationError({"store": [NO_STORE]})
        return super().to_internal_value(data)


class CutAnswer(serializers.Serializer):
    """Chunks that are longer than the encoder reads."""

    window = serializers.IntegerField(min_value=0, help_text="Tokens that it reads of a text.")
    chunks = serializers.IntegerField(min_value=1)
    tokens = serializers.IntegerField(min_value=1, help_text="Of these chunks.")
    cut_tokens = serializers.IntegerField(min_value=1, help_text="Those that it did not read.")


class IndexStats(serializers.Serializer):
    """Costs and counts of a build."""

    duration_sec = serializers.FloatField(
        min_value=0,
        help_text="The work that it costs, over all workers. What it shares, and what caches had, costs it what that "
        "took when it was made; loading models and waiting cost nothing.",
    )
    num_documents = serializers.IntegerField(min_value=0)
    num_chunks = serializers.IntegerField(min_value=0)
    num_vectors = serializers.IntegerField(min_value=0, help_text="Of chunks, and of summaries above them.")
    embed_calls = serializers.IntegerField(min_value=0, help_text="Texts that it needs encoded, cached or not.")
    cache_hits = serializers.IntegerField(min_value=0)
    llm_calls = serializers.IntegerField(min_value=0)
    bytes = serializers.IntegerField(min_value=0)
    vectors_sec = serializers.FloatField(allow_null=True, default=None, help_text="The part of its vectors.")
    cut = CutAnswer(allow_null=True, default=None, help_text="Chunks longer than the encoder reads; null: none.")


class PromptsAnswer(serializers.Serializer):
    """The prompts that an encoder used."""

    query = serializers.CharField()
    document = serializers.CharField()


class IndexAnswer(ModelAnswer):
    """An index."""

    error = TextOrNull(allow_null=True, help_text="Why building it failed.")
    prompts = PromptsAnswer(allow_null=True, help_text="What the encoder put before the texts; null until it is built.")
    stats = serializers.SerializerMethodField(help_text="null until it is ready.")
    warnings = serializers.SerializerMethodField(help_text="What its encoder and its lexical search did not read.")
    operation_uuid = serializers.UUIDField(
        allow_null=True, help_text="The operation that built it last, or builds it now."
    )

    class Meta:
        model = Index
        fields = [
            *("id", "collection_id", "name", "version", "status", "error", "encoder", "encoder_revision", "dimension"),
            *("query_prompt", "document_prompt", "precision", "prompts"),
            *("lexical", "strategy", "chunk_parameters", "llm", "llm_parameters", "vector_source", "fingerprint"),
            *("stats", "warnings", "operation_uuid", "owner_id", "created_at", "ready_at"),
        ]
        extra_kwargs = {
            "name": {"help_text": "In a matrix it means the newest ready version of this name."},
            "encoder": {"help_text": "Empty: no encoder, or imported vectors of a model without a name."},
            "query_prompt": {"help_text": "null: that of the model's configuration."},
            "document_prompt": {"help_text": "null: that of the model's configuration."},
            "encoder_revision": {"help_text": "Empty until it is built. It names a precision and prompts of its own."},
            "llm": {"help_text": "The language model that its strategy asks; empty: none."},
            "vector_source": {"help_text": "Empty: encoded here. Else the SHA-256 of the imported file."},
            "fingerprint": {"help_text": "Empty until it is ready."},
        }

    @extend_schema_field(IndexStats(allow_null=True))
    def get_stats(self, index: Index) -> Any:
        return IndexStats(index.stats).data if index.status == Index.Status.READY else None

    def get_warnings(self, index: Index) -> list[str]:
        return list_index_warnings(index) if index.status == Index.Status.READY else []


IndexPage = build_page("indexes", IndexAnswer)


@dataclass(frozen=True)
class BuildStarted:
    """An index that is being built."""

    id: UUID
    status: Index.Status
    operation_uuid: Annotated[UUID, "/operations/{uuid} shows its progress."]


@dataclass(frozen=True)
class IndexOptions:
    """Values for indexes and matrices. Any published model may be an encoder or reranker."""

    encoders: Annotated[list[str], "The default first; then those of the ready indexes that you see, by name."]
    strategies: list[str]
    stores: Annotated[list[str], 'Those that are installed here, as `ann` of a matrix names them: "faiss:hnsw".']
    search_modes: list[str]
    lexical: list[str]
    fusions: list[str]
    rerankers: Annotated[
        list[str], "Rerankers that use the index's own encoder; any other name is that of a cross-encoder."
    ]
    engines: Annotated[list[str], "Search engines that the site declares, for the modes that ask one."]


class CollectionIndexes(Resource):
    """The indexes of a collection."""

    model = Index
    route = "collections/<id:collection_id>/indexes"

    @get("", IndexPage, PageQuery, tags=["indexes"])
    def list_indexes(self, collection: Collection, query: Validated) -> QuerySet[Index]:
        """List the indexes of a collection, newest first."""
        return annotate_operation(visible(collection.indexes.order_by("-created_at", "id"), self.user))

    @post(
        "", IndexAnswer, NewIndex, act="add", status=201, tags=["indexes"], history="Create an index of a collection."
    )
    def create_index(self, collection: Collection, data: Validated) -> Index:
        """Create an index of a collection, as the next version of its name; build it to search it.

        409 if the collection has no documents.
        """
        index = create_index(collection, owner=self.user, **data)
        return read_again(annotate_operation(Index.objects.all()), index.pk)

    def rows(self) -> QuerySet[Collection]:
        return Collection.objects.all()


class Indexes(Resource):
    model = Index
    route = "indexes"

    @get("/options", IndexOptions)
    def get_index_options(self) -> IndexOptions:
        """List the values that this site offers for indexes and matrices."""
        return IndexOptions(
            encoders=list_encoders(visible(Index.objects.all(), self.user)),
            strategies=list(STRATEGIES),
            stores=[store for store in STORES if not describe_missing({"store": store})],
            search_modes=list(SEARCH_MODES),
            lexical=list(LEXICAL),
            fusions=list(FUSIONS),
            rerankers=list(RERANKERS),
            engines=[engine.alias for engine in list_engines()],
        )

    @get("/<id:index_id>", IndexAnswer)
    def get_index(self, index: Index) -> Index:
        """Show an index with the costs of its build."""
        return index

    @delete("/<id:index_id>", history="Delete an index.")
    def delete_index(self, index: Index) -> None:
        """Delete an index; 409 while runs use it, or while it is being built."""
        delete_index(index)

    @post("/<id:index_id>/build", BuildStarted, status=202, throttle="start", history="Enqueue the build of an index.")
    def build_index(self, index: Index) -> BuildStarted:
        """Enqueue the build of an index; a failed build resumes where it stopped.

        409 if the index is ready or being built, or if you are at your limit of builds (`quota`).
        """
        operation = build_index(index, by=self.user)
        return BuildStarted(index.pk, Index.Status(index.status), operation.pk)

    def rows(self) -> QuerySet[Index]:
        return annotate_operation(Index.objects.all())
