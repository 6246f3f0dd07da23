"""Indexes on the wire."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import AnyObject, Choice, Flag, ListOf, Moment, StrictSerializer, Text
from apps.api.paging import Page
from apps.retrieval.encoders.admitting import PUBLISHED
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.models import Index
from benchbench.ir.planning.strategies import ASKING, STRATEGIES
from benchbench.names import MAX_LENGTH

ENCODER = rf"^(?:|(?:{'|'.join(ENCODERS)}).+|{PUBLISHED.pattern})$"
NO_NAME = (
    'encoder must be the name of a model, as in "sentence-transformers/all-MiniLM-L6-v2": folders of the server are '
    "named by commands only."
)
NO_STORE = (
    "An index has no store: PostgreSQL keeps its vectors. Name the store where it searches, in the matrix of a "
    'benchmark, as in "ann": ["faiss:hnsw"].'
)


def default_encoder() -> str:
    return settings.BENCHBENCH_DEFAULT_MODEL


class NewIndex(StrictSerializer):
    """A new index of a collection."""

    name = Text(
        max_length=MAX_LENGTH,
        help_text="Short: it is part of the label of every run. "
        "A name that the collection already has makes its next version.",
    )
    encoder = Text(
        required=False,
        default=default_encoder,
        allow_blank=True,
        max_length=500,
        validators=[RegexValidator(ENCODER, NO_NAME)],
        help_text="A sentence-transformers model by its published name, looked for when the index is built. Left out: "
        "the site's default, the first of /indexes/options. Empty: lexical search only. keyword:apple,pear counts "
        "these words: for tests and for trying things out.",
    )
    lexical = Flag(required=False, default=True, help_text="For lexical and hybrid search: BM25 too.")
    strategy = Choice(list(STRATEGIES), required=False, default="flat")
    chunk_parameters = AnyObject(
        required=False,
        default=dict,
        help_text="Of the strategy, sizes in characters. "
        + " ".join(f"{name}: {strategy.example}: {strategy.notes}." for name, strategy in STRATEGIES.items()),
    )
    llm = Text(
        required=False,
        default="",
        allow_blank=True,
        max_length=500,
        help_text=f"The language model that {' and '.join(ASKING)} ask, as its server calls it.",
    )
    llm_parameters = AnyObject(
        required=False,
        default=dict,
        help_text='{"provider": "ollama", "temperature": 0, "max_tokens": 500, "seed": 0, "cache": true}: provider is '
        "the name of a server of this site's settings, by default the first; cache false asks anew for each query.",
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and "store" in data:
            raise serializers.ValidationError({"store": [NO_STORE]})
        return super().to_internal_value(data)


class GridStrategy(StrictSerializer):
    """A strategy of an index grid."""

    strategy = Choice(list(STRATEGIES))
    chunk_parameters = AnyObject(required=False, default=dict, help_text="As those of an index.")


class GridLLM(StrictSerializer):
    """A language model of an index grid."""

    llm = Text(max_length=500, help_text="As its server calls it.")
    llm_parameters = AnyObject(required=False, default=dict, help_text="As those of an index.")


class NewGrid(StrictSerializer):
    """An index grid: each strategy by each encoder, and by each language model where the strategy asks one."""

    strategies = ListOf(child=GridStrategy(), min_length=1)
    encoders = ListOf(
        child=Text(allow_blank=True, max_length=500, validators=[RegexValidator(ENCODER, NO_NAME)]),
        min_length=1,
        help_text="As that of an index; an empty text is lexical search only.",
    )
    llms = ListOf(child=GridLLM(), required=False, default=list, help_text="For the strategies that ask one.")
    lexical = Flag(required=False, default=True, help_text="For lexical and hybrid search: BM25 too.")


class GridCell(serializers.Serializer):
    """An index of a grid that is planned."""

    name = serializers.CharField(help_text="What it is called, or would be: it says what it is made of.")
    state = serializers.ChoiceField(
        ["ready", "begun", "new", "unavailable"],
        help_text="ready: there is such an index. begun: there is one, still to be built. new: it would be made. "
        "unavailable: it cannot be made here, for the reason in error.",
    )
    strategy = serializers.CharField()
    chunk_parameters = serializers.DictField(help_text="With every default.")
    encoder = serializers.CharField(allow_blank=True)
    llm = serializers.CharField(allow_blank=True)
    llm_parameters = serializers.DictField()
    index = serializers.UUIDField(allow_null=True, help_text="The index that is there.")
    error = serializers.CharField(allow_null=True)


class GridPlan(serializers.Serializer):
    """What an index grid would make."""

    indexes = GridCell(many=True)


class IndexStats(serializers.Serializer):
    """What building took and made."""

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


class IndexFacts(serializers.Serializer):
    """An index in the API."""

    id = serializers.UUIDField()
    collection_id = serializers.UUIDField()
    name = serializers.CharField(help_text="In a matrix it means the newest ready version of this name.")
    version = serializers.IntegerField(min_value=1)
    status = serializers.ChoiceField(Index.Status.choices)
    error = serializers.SerializerMethodField(help_text="Why building it failed.")
    encoder = serializers.CharField(help_text="Empty: no encoder, or imported vectors of a model without a name.")
    encoder_revision = serializers.CharField(help_text="Empty until it is built.")
    dimension = serializers.IntegerField(allow_null=True, min_value=1)
    lexical = serializers.BooleanField()
    strategy = serializers.CharField()
    chunk_parameters = serializers.DictField()
    llm = serializers.CharField(help_text="The language model that its strategy asks; empty: none.")
    llm_parameters = serializers.DictField()
    vector_source = serializers.CharField(help_text="Empty: encoded here. Else the SHA-256 of the imported file.")
    fingerprint = serializers.CharField(help_text="Empty until it is ready.")
    stats = serializers.SerializerMethodField(help_text="null until it is ready.")
    operation_uuid = serializers.UUIDField(
        allow_null=True, help_text="The operation that built it last, or builds it now."
    )
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")
    created_at = Moment()
    ready_at = Moment(allow_null=True)

    def get_error(self, index: Index) -> str | None:
        return index.error or None

    @extend_schema_field(IndexStats(allow_null=True))
    def get_stats(self, index: Index) -> Any:
        return IndexStats(index.stats).data if index.status == Index.Status.READY else None


class GridMade(serializers.Serializer):
    """The indexes of a grid."""

    indexes = IndexFacts(many=True)


class IndexPage(Page):
    """A page of indexes."""

    indexes = IndexFacts(many=True)


class BuildStarted(serializers.Serializer):
    """An index that is being built."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(Index.Status.choices)
    operation_uuid = serializers.UUIDField(help_text="/operations/{uuid} shows its progress.")


class IndexOptions(serializers.Serializer):
    """What indexes and matrices are made of. Encoders and rerankers may be others: any published model of the kind."""

    encoders = serializers.ListField(
        child=serializers.CharField(),
        help_text="The default first; then those of the indexes that you see and that are ready, by name.",
    )
    strategies = serializers.ListField(child=serializers.CharField())
    stores = serializers.ListField(
        child=serializers.CharField(),
        help_text='Those that are installed here, as `ann` of a matrix names them: "faiss:hnsw".',
    )
    search_modes = serializers.ListField(child=serializers.CharField())
    lexical = serializers.ListField(child=serializers.CharField())
    fusions = serializers.ListField(child=serializers.CharField())
    rerankers = serializers.ListField(
        child=serializers.CharField(),
        help_text="Rerankers that use the index's own encoder; any other name is that of a cross-encoder.",
    )
