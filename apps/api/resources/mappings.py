"""Mappings: datasets laid over collections, and how their references are resolved."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.errors import naming
from apps.api.fields import Identifier, PageQuery, StrictSerializer, Text, VersionNumber, require_empty, valid
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.mappings.checking import References, check_version
from apps.mappings.creating import create_mapping, delete_mapping
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing import Unresolved, unresolved_of, with_candidates
from apps.mappings.resolving import resolve
from benchbench.access import visible
from benchbench.names import MAX_LENGTH

LOST = [outcome.value for outcome in Resolution.Outcome if outcome != Resolution.Outcome.RESOLVED]


class MappingRequest(StrictSerializer):
    """Which collection the dataset is laid over."""

    collection_id = Identifier()
    name = Text(default="", allow_blank=True, max_length=MAX_LENGTH, help_text="Without: after both.")


class MappingAnswer(ModelAnswer):
    """A mapping."""

    dataset_version = serializers.IntegerField(
        source="dataset_version.number",
        allow_null=True,
        help_text="Number of the version whose judgments the counts speak of; null before the mapping is resolved.",
    )
    mapping_status = serializers.ChoiceField(Mapping.Status.values, source="status")
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Judgments by outcome; conflicts: documents that a query grades differently. Empty: not resolved.",
    )

    class Meta:
        model = Mapping
        fields = [
            *("id", "name", "dataset_id", "dataset_version", "collection_id", "mapping_status", "mapped_count"),
            *("total_count", "counts", "created_at", "resolved_at"),
        ]
        extra_kwargs = {"mapped_count": {"help_text": "Judgments that found their document."}}


class UnresolvedQuery(PageQuery):
    """Which page, and of which outcome."""

    outcome = serializers.ChoiceField(LOST, required=False)


UnresolvedPage = page_of("unresolved", Unresolved)


class ResolvedAnswer(MappingAnswer):
    """A mapping and the result of resolving it."""

    operation_uuid = serializers.UUIDField(allow_null=True, help_text="The operation that resolves it on the queue.")
    unresolved = Answer(
        dataclass=Unresolved,
        many=True,
        help_text="The first of them; …/unresolved lists all. Empty where queued.",
    )

    class Meta(MappingAnswer.Meta):
        fields = [*MappingAnswer.Meta.fields, "operation_uuid", "unresolved"]


class CheckRequest(StrictSerializer):
    """Which version of the dataset is looked up."""

    version = VersionNumber(help_text="Default: the draft, else the newest version.")


class CheckedAnswer(Answer):
    """What looking up references found; nothing is stored."""

    version = serializers.IntegerField()
    dangling_count = serializers.IntegerField(
        help_text="References that do not lead to exactly one document, or lead to no section."
    )

    class Meta:
        dataclass = References


SAMPLES = 20
DANGLING = 100


class Mappings(Endpoint):
    model = Mapping
    acts = {"POST": "add"}

    @extend_schema(operation_id="list_mappings", responses=MappingAnswer(many=True))
    def get(self, request: Request, dataset_id: UUID) -> Response:
        """List the mappings of a dataset, newest first: all of them, in one list without pages."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        require_empty(request.query_params)
        rows = visible(dataset.mappings.order_by("-created_at", "id"), request.user)
        return Response(MappingAnswer(rows.select_related("dataset_version"), many=True).data)

    @extend_schema(operation_id="create_mapping", request=MappingRequest, responses={201: MappingAnswer})
    def post(self, request: Request, dataset_id: UUID) -> Response:
        """Map a dataset to a collection, not resolved yet; 409 where the mapping exists."""
        dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
        data = valid(MappingRequest, request.data)
        collection = find_visible(Collection.objects.all(), data["collection_id"], request.user)
        with naming(collection="collection_id"):
            mapping = create_mapping(dataset, collection, name=data["name"], owner=request.user)
        return Response(MappingAnswer(mapping).data, status=201)


class OneMapping(Endpoint):
    model = Mapping

    @extend_schema(operation_id="get_mapping", responses=MappingAnswer)
    def get(self, request: Request, dataset_id: UUID, mapping_id: UUID) -> Response:
        """Show a mapping."""
        return Response(MappingAnswer(mapping_at(request, dataset_id, mapping_id)).data)

    @extend_schema(operation_id="delete_mapping", responses={204: None})
    def delete(self, request: Request, dataset_id: UUID, mapping_id: UUID) -> Response:
        """Delete a mapping; 409 while a benchmark uses it or an operation resolves it."""
        delete_mapping(mapping_at(request, dataset_id, mapping_id))
        return Response(status=204)


class ResolveMapping(Endpoint):
    model = Mapping
    throttles = {"POST": "start"}

    @extend_schema(operation_id="resolve_mapping", request=None, responses={200: ResolvedAnswer, 202: ResolvedAnswer})
    def post(self, request: Request, dataset_id: UUID, mapping_id: UUID) -> Response:
        """Give each judgment of the newest frozen version its document, or the reason why it has none.

        200 where that was quick; 202 where it is left to the queue, with the operation to watch: until that ends the
        mapping keeps what it had. 409 while an operation resolves it, where no version is frozen yet, and where you
        have as many on the queue as one may (`quota`).
        """
        mapping = mapping_at(request, dataset_id, mapping_id)
        require_empty(request.data)
        with naming(dataset=None):
            resolved = resolve(mapping, by=request.user)
        mapping, operation = resolved.mapping, resolved.operation
        lost = [] if operation else with_candidates(mapping, list(unresolved_of(mapping)[:SAMPLES]))
        facts = {
            **MappingAnswer(mapping).data,
            "operation_uuid": operation and operation.pk,
            "unresolved": Answer(lost, dataclass=Unresolved, many=True).data,
        }
        return Response(facts, status=202 if operation else 200)


class UnresolvedJudgments(Endpoint):
    model = Mapping

    @extend_schema(operation_id="list_unresolved", parameters=[UnresolvedQuery], responses=UnresolvedPage)
    def get(self, request: Request, dataset_id: UUID, mapping_id: UUID) -> Response:
        """List the judgments that found no document, with the reason, and what ambiguous ones might mean."""
        mapping = mapping_at(request, dataset_id, mapping_id)
        query = valid(UnresolvedQuery, request.query_params)
        rows = unresolved_of(mapping)
        if "outcome" in query:
            rows = rows.filter(outcome=query["outcome"])
        return answer_page(UnresolvedPage, rows, query, tell=lambda shown: with_candidates(mapping, shown))


class CheckMapping(Endpoint):
    model = Mapping
    acts = {"POST": "view"}

    @extend_schema(operation_id="check_mapping", request=CheckRequest, responses=CheckedAnswer)
    def post(self, request: Request, dataset_id: UUID, mapping_id: UUID) -> Response:
        """Look up the references of a version, the draft too, among the documents as they are; nothing is stored.

        Sections that a judgment names are looked up as well. 409 where there are too many for one request.
        """
        mapping = mapping_at(request, dataset_id, mapping_id)
        data = valid(CheckRequest, request.data)
        version = find_version(mapping.dataset, data.get("version"), edited=True)
        references = check_version(version, mapping.collection)
        facts = {
            "version": version.number,
            "checked": references.checked,
            "dangling_count": len(references.dangling),
            "dangling": references.dangling[:DANGLING],
        }
        return Response(CheckedAnswer(facts).data)


def mapping_at(request: Request, dataset_id: UUID, mapping_id: UUID) -> Mapping:
    """Return the mapping of an address; raise as `find_visible` does for it and for its dataset."""
    dataset = find_visible(Dataset.objects.all(), dataset_id, request.user)
    rows = dataset.mappings.select_related("dataset", "dataset_version", "collection")
    return find_visible(rows, mapping_id, request.user)
