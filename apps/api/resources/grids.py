"""Grids of indexes: what one would make, and making it."""

from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.answers import Answer
from apps.api.fields import Flag, StrictSerializer, Text, Validated
from apps.api.resource import post
from apps.api.resources.indexes import ENCODER, NO_NAME, CollectionIndexes, IndexAnswer, build_prompt
from apps.collections.models import Collection
from apps.retrieval.describing import annotate_operation
from apps.retrieval.grids import Grid, make_grid, plan_grid
from apps.retrieval.models import Index, Ingredients
from benchbench.ir.encoding import DEFAULT, LONGEST_PROMPT, PRECISIONS, EncoderParameters
from benchbench.ir.planning.strategies import STRATEGIES


class GridStrategy(StrictSerializer):
    """A strategy of an index grid."""

    strategy = serializers.ChoiceField(list(STRATEGIES))
    chunk_parameters = serializers.DictField(default=dict, help_text="As those of an index.")


class GridLLM(StrictSerializer):
    """A language model of an index grid."""

    llm = Text(max_length=500, help_text="As its server calls it.")
    llm_parameters = serializers.DictField(default=dict, help_text="As those of an index.")


class GridEncoder(StrictSerializer):
    """An encoder of an index grid, with its prompts and precision."""

    encoder = Text(allow_blank=True, max_length=500, validators=[RegexValidator(ENCODER, NO_NAME)])
    query_prompt = build_prompt("query")
    document_prompt = build_prompt("document")
    precision = serializers.ChoiceField(list(PRECISIONS), default=DEFAULT.precision)


PROMPT = {"type": ["string", "null"], "maxLength": LONGEST_PROMPT}
PARAMETERS = {"query_prompt": PROMPT, "document_prompt": PROMPT, "precision": {"enum": list(PRECISIONS)}}
NAME = {"type": "string", "maxLength": 500}
ENTRY = {"type": "object", "properties": {"encoder": NAME, **PARAMETERS}, "required": ["encoder"]}


@extend_schema_field({"oneOf": [NAME, ENTRY | {"additionalProperties": False}]})
class EncoderEntry(serializers.Field):
    """An encoder by its name, or an object of it."""

    def to_internal_value(self, data: object) -> Any:
        return GridEncoder().run_validation({"encoder": data} if isinstance(data, str) else data)

    def to_representation(self, value: object) -> Any:
        return value


class NewGrid(StrictSerializer):
    """An index grid: each strategy by each encoder, and by each language model where the strategy asks one."""

    strategies = serializers.ListField(child=GridStrategy(), min_length=1)
    encoders = serializers.ListField(
        child=EncoderEntry(),
        min_length=1,
        help_text="As those of an index. A text is the name of an encoder by itself; an empty one is lexical search "
        "only.",
    )
    llms = serializers.ListField(child=GridLLM(), default=list, help_text="For the strategies that ask one.")
    lexical = Flag(default=True, help_text="For lexical and hybrid search: BM25 too.")


class CellAnswer(Answer):
    """A planned index of a grid."""

    name = serializers.CharField(help_text="Its name, derived from its settings.")
    state = serializers.ChoiceField(
        ["ready", "begun", "new", "unavailable"],
        help_text="ready: the index exists. begun: it exists and is not built yet. new: it would be created. "
        "unavailable: it cannot be made here, for the reason in error.",
    )
    index = serializers.UUIDField(allow_null=True, help_text="The existing index.")
    error = serializers.CharField(allow_null=True)

    class Meta:
        dataclass = Ingredients
        exclude = ["lexical"]


class GridPlan(serializers.Serializer):
    """The indexes that a grid would create."""

    indexes = CellAnswer(many=True)


class GridIndexes(serializers.Serializer):
    """The indexes of a grid."""

    indexes = IndexAnswer(many=True)


def build_grid(data: Validated) -> Grid:
    return Grid(
        strategies=[(entry["strategy"], entry["chunk_parameters"]) for entry in data["strategies"]],
        encoders=[
            (entry["encoder"], EncoderParameters(entry["query_prompt"], entry["document_prompt"], entry["precision"]))
            for entry in data["encoders"]
        ],
        llms=[(entry["llm"], entry["llm_parameters"]) for entry in data["llms"]],
        lexical=data["lexical"],
    )


class Grids(CollectionIndexes):
    route = f"{CollectionIndexes.route}/grid"

    @post(
        "",
        GridIndexes,
        NewGrid,
        act="add",
        status=202,
        throttle="start",
        tags=["indexes"],
        history="Create an index for each strategy and encoder, and enqueue the builds.",
    )
    def build_indexes(self, collection: Collection, data: Validated) -> dict[str, object]:
        """Create an index for each strategy and encoder, and enqueue the builds: all or none.

        An existing index with the same settings is reused. 409 if the collection has no documents, a model or package
        is missing, or you would exceed your limit of builds (`quota`).
        """
        cells = make_grid(collection, build_grid(data), owner=self.user, by=self.user)
        rows = annotate_operation(Index.objects.all()).in_bulk([cell.index.pk for cell in cells])
        return {"indexes": [rows[cell.index.pk] for cell in cells]}

    @post("/preview", GridPlan, NewGrid, act="view", tags=["indexes"])
    def preview_indexes(self, collection: Collection, data: Validated) -> dict[str, object]:
        """Show which indexes of a grid exist and which would be created, without creating any."""
        cells = plan_grid(collection, build_grid(data), owner=self.user)
        return {"indexes": [cell.as_dict() for cell in cells]}
