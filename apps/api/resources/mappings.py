"""Mappings: datasets laid over collections, and how their references are resolved."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, ModelAnswer, answer_page, build_page, present
from apps.api.fields import Identifier, PageQuery, StrictSerializer, Text, Validated, VersionNumber, require_empty
from apps.api.resource import delete, find_visible, get, post
from apps.api.resources.datasets import DatasetPart
from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.mappings.checking import References, check_version
from apps.mappings.creating import create_mapping, delete_mapping, ensure_external
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing import CANDIDATE_FIELDS, MOST_CANDIDATES, add_candidates, load_unresolved
from apps.mappings.resolving import resolve
from benchbench.access import visible
from benchbench.names import MAX_LENGTH

LOST = [outcome.value for outcome in Resolution.Outcome if outcome != Resolution.Outcome.RESOLVED]


class MappingRequest(StrictSerializer):
    """The collection to map a dataset to."""

    collection_id = Identifier(
        allow_null=True, help_text="null: ids alone, for search engines and imported runs over documents not here."
    )
    name = Text(default="", allow_blank=True, max_length=MAX_LENGTH, help_text="Without: after both.")


class MappingAnswer(ModelAnswer):
    """A mapping."""

    dataset_version = serializers.IntegerField(
        source="dataset_version.number",
        allow_null=True,
        help_text="Number of the version whose judgments are counted; null before the mapping is resolved.",
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
    """Query parameters for listing unresolved judgments."""

    outcome = serializers.ChoiceField(LOST, required=False)


class Candidate(ModelAnswer):
    """A document that matches an ambiguous reference."""

    class Meta:
        model = Document
        fields = CANDIDATE_FIELDS


class Unresolved(ModelAnswer):
    """A judgment without a document, with the reason."""

    query_id = serializers.IntegerField(source="judgment.query_id")
    query_key = serializers.CharField(source="judgment.query.key")
    query_text = serializers.CharField(source="judgment.query.text")
    doc_ref = serializers.DictField(source="judgment.doc_ref")
    relevance_grade = serializers.IntegerField(source="judgment.grade")
    outcome = serializers.ChoiceField(LOST)
    key = serializers.CharField(help_text="The key of the reference that decided, if any.")
    candidates = Candidate(many=True, help_text=f"Of an ambiguous one, at most {MOST_CANDIDATES}.")

    class Meta:
        model = Resolution
        fields = [
            *("judgment_id", "query_id", "query_key", "query_text", "doc_ref", "relevance_grade", "outcome", "key"),
            *("reason", "candidates"),
        ]


UnresolvedPage = build_page("unresolved", Unresolved)


class ResolvedAnswer(MappingAnswer):
    """A mapping and the result of resolving it."""

    operation_uuid = serializers.UUIDField(allow_null=True, help_text="The operation that resolves it on the queue.")
    unresolved = Unresolved(many=True, help_text="The first of them; …/unresolved lists all. Empty where queued.")

    class Meta(MappingAnswer.Meta):
        fields = [*MappingAnswer.Meta.fields, "operation_uuid", "unresolved"]


class CheckRequest(StrictSerializer):
    """The version of the dataset to check."""

    version = VersionNumber(help_text="Default: the draft, else the newest version.")


class CheckedAnswer(Answer):
    """Result of checking references, without storing it."""

    version = serializers.IntegerField()
    dangling_count = serializers.IntegerField(
        help_text="References that do not lead to exactly one document, or lead to no section."
    )

    class Meta:
        dataclass = References


SAMPLES = 20
DANGLING = 100


class Mappings(DatasetPart):
    model = Mapping
    route = f"{DatasetPart.route}/mappings"

    @get("", MappingAnswer(many=True))
    def list_mappings(self, dataset: Dataset) -> Response:
        """List all mappings of a dataset, newest first, without pages."""
        require_empty(self.request.query_params)
        rows = visible(dataset.mappings.order_by("-created_at", "id"), self.user)
        return Response(MappingAnswer(rows.select_related("dataset_version"), many=True).data)

    @post(
        "",
        MappingAnswer,
        MappingRequest,
        act="add",
        status=201,
        names={"collection": "collection_id"},
        history="Map a dataset to a collection.",
    )
    def create_mapping(self, dataset: Dataset, data: Validated) -> Mapping:
        """Map a dataset to a collection, unresolved; 409 if the mapping exists.

        Without a collection, return the dataset's mapping onto ids alone, resolved.
        """
        if data["collection_id"] is None:
            return ensure_external(dataset)
        collection = find_visible(Collection.objects.all(), data["collection_id"], self.user)
        return create_mapping(dataset, collection, name=data["name"], owner=self.user)

    @get("/<id:mapping_id>", MappingAnswer)
    def get_mapping(self, mapping: Mapping) -> Mapping:
        """Show a mapping."""
        return mapping

    @delete("/<id:mapping_id>", history="Delete a mapping.")
    def delete_mapping(self, mapping: Mapping) -> None:
        """Delete a mapping; 409 while a benchmark uses it or an operation resolves it."""
        delete_mapping(mapping)

    @post(
        "/<id:mapping_id>/resolve",
        ResolvedAnswer,
        statuses=(200, 202),
        throttle="start",
        names={"dataset": None},
        history="Find the document of each judgment of the newest frozen version.",
    )
    def resolve_mapping(self, mapping: Mapping) -> Response:
        """Find the document of each judgment of the newest frozen version, or the reason why it is missing.

        200 if that is done; 202 if the queue does it, with the operation to watch: until it ends the mapping does not
        change. 409 while an operation resolves it, if no version is frozen, or if you are at your limit of queued
        operations (`quota`).
        """
        resolved = resolve(mapping, by=self.user)
        mapping, operation = resolved.mapping, resolved.operation
        lost = () if operation else add_candidates(mapping, list(load_unresolved(mapping)[:SAMPLES]))
        vars(mapping).update(operation_uuid=operation and operation.pk, unresolved=lost)
        return present(ResolvedAnswer, mapping, 202 if operation else 200)

    @get("/<id:mapping_id>/unresolved", UnresolvedPage, UnresolvedQuery)
    def list_unresolved(self, mapping: Mapping, query: Validated) -> Response:
        """List the judgments without a document, with the reason and the candidates of ambiguous ones."""
        rows = load_unresolved(mapping)
        if "outcome" in query:
            rows = rows.filter(outcome=query["outcome"])
        return answer_page(UnresolvedPage, rows, query, prepare=lambda page_rows: add_candidates(mapping, page_rows))

    @post("/<id:mapping_id>/check", CheckedAnswer, CheckRequest, act="view")
    def check_mapping(self, mapping: Mapping, data: Validated) -> dict[str, object]:
        """Check the references of a version or draft against the current documents, without storing anything.

        Sections of judgments are checked too. 409 if there are too many for one request.
        """
        version = find_version(mapping.dataset, data.get("version"), edited=True)
        references = check_version(version, mapping.collection)
        return {
            "version": version.number,
            "checked": references.checked,
            "dangling_count": len(references.dangling),
            "dangling": references.dangling[:DANGLING],
        }

    def find(self, dataset_id: UUID, mapping_id: Any = None) -> Any:
        dataset = super().find(dataset_id)
        rows = dataset.mappings.select_related("dataset", "dataset_version", "collection")
        return find_visible(rows, mapping_id, self.user) if mapping_id else dataset
