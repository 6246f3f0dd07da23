"""Operations on the wire, in the words of the WebSocket (docs/events.md)."""

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from apps.api.paging import Page, PageQuery
from apps.api.serializers.base import Choice
from apps.operations.handlers import HANDLERS
from apps.operations.models import Operation, Status

KINDS = [str(kind) for kind in HANDLERS]


class OperationQuery(PageQuery):
    """Which operations."""

    status_filter = Choice(Status.choices, required=False)
    kind = Choice(KINDS, required=False)


class OperationFacts(serializers.Serializer):
    """An operation in a list."""

    operation_id = serializers.UUIDField(source="pk")
    kind = serializers.ChoiceField(KINDS)
    subject_id = serializers.UUIDField(help_text="The benchmark, mapping or index that is worked on.")
    owner_id = serializers.IntegerField(allow_null=True, help_text="null: it belongs to the whole staff.")
    queue = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    error = serializers.SerializerMethodField(help_text="Why it failed.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="When a worker took it up.")
    finished_at = serializers.DateTimeField(allow_null=True)

    def get_error(self, operation: Operation) -> str | None:
        return operation.error or None


class OperationPage(Page):
    """A page of operations."""

    operations = OperationFacts(many=True)


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "An index that is being built",
            {
                "operation_id": "1ab4e3a9-de8a-4a11-8670-f862dd61c7a3",
                "kind": "index",
                "subject_id": "4b7a028e-9d03-4955-b8f6-3edfb12a2e15",
                "owner_id": 7,
                "queue": "gpu",
                "status": "running",
                "error": None,
                "created_at": "2026-11-22T05:12:23Z",
                "started_at": "2026-11-22T05:12:26Z",
                "finished_at": None,
                "event": "index_progress",
                "progress": {
                    "operation_id": "1ab4e3a9-de8a-4a11-8670-f862dd61c7a3",
                    "index_id": "4b7a028e-9d03-4955-b8f6-3edfb12a2e15",
                    "collection_id": "861510a0-3034-4a6f-a604-b5b4904a5a0b",
                    "status": "running",
                    "stage": "encoding",
                    "error": None,
                    "total_documents": 30,
                    "processed_documents": 12,
                    "chunks": 80,
                    "eta_seconds": 4.5,
                    "queue_position": None,
                    "waiting_for": None,
                },
            },
            response_only=True,
        )
    ]
)
class OperationState(OperationFacts):
    """An operation with its progress: what the WebSocket says first, as `current_state`."""

    event = serializers.CharField(help_text="The type of its events.")
    progress = serializers.DictField(help_text="The data of such an event, by docs/events.md.")
