"""Operations: list, look, cancel."""

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import ModelAnswer, TextOrNull, answer_page, page_of
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import PageQuery, require_empty, valid
from apps.operations.handlers import HANDLERS
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation, Status, of_subject
from apps.operations.progress import snapshot
from benchbench.access import visible

KINDS = [str(kind) for kind in HANDLERS]


class OperationQuery(PageQuery):
    """Which operations."""

    status_filter = serializers.ChoiceField(Status.choices, required=False)
    kind = serializers.ChoiceField(KINDS, required=False)


class OperationAnswer(ModelAnswer):
    """An operation in a list."""

    operation_id = serializers.UUIDField(source="pk")
    kind = serializers.ChoiceField(KINDS)
    owner_id = serializers.IntegerField(
        allow_null=True, help_text="Owner of the subject; null: the whole staff, or the subject was deleted."
    )
    started_by = serializers.CharField(
        source="started_by.username",
        allow_null=True,
        help_text="The user whose quota it counts against; null: a command without an owner, or the user was deleted.",
    )
    error = TextOrNull(allow_null=True, help_text="Why it failed.")

    class Meta:
        model = Operation
        fields = [
            *("operation_id", "kind", "subject_id", "owner_id", "started_by", "queue", "status", "error"),
            *("created_at", "started_at", "finished_at"),
        ]
        extra_kwargs = {"started_at": {"help_text": "When a worker started it."}}


OperationPage = page_of("operations", OperationAnswer)


class OperationState(OperationAnswer):
    """An operation with its progress: what the WebSocket says first, as `current_state`."""

    event = serializers.CharField(help_text="The type of its events.")
    progress = serializers.DictField(help_text="The data of such an event, by docs/events.md.")

    class Meta(OperationAnswer.Meta):
        fields = [*OperationAnswer.Meta.fields, "event", "progress"]


class Operations(Endpoint):
    model = Operation

    @extend_schema(operation_id="list_operations", parameters=[OperationQuery], responses=OperationPage)
    def get(self, request: Request) -> Response:
        """List operations, newest first; those of a status, or of a kind."""
        query = valid(OperationQuery, request.query_params)
        rows = visible(told_rows().order_by("-created_at", "id"), request.user)
        fields = {"status": query.get("status_filter"), "kind": query.get("kind")}
        return answer_page(OperationPage, rows.filter(**{key: value for key, value in fields.items() if value}), query)


class OneOperation(Endpoint):
    model = Operation

    @extend_schema(operation_id="get_operation", responses=OperationState)
    def get(self, request: Request, operation_id: UUID) -> Response:
        """Show an operation, with its whole progress."""
        return state_of(find_visible(told_rows(), operation_id, request.user))


class OperationCancel(Endpoint):
    model = Operation

    @extend_schema(operation_id="cancel_operation", request=None, responses=OperationState)
    def post(self, request: Request, operation_id: UUID) -> Response:
        """Cancel an operation: workers stop between parts, and what they have stored stays. 409 after its end."""
        operation = find_visible(told_rows(), operation_id, request.user)
        require_empty(request.data)
        cancel_operation(operation)
        return state_of(operation)


def told_rows() -> QuerySet[Operation]:
    """Return the operations with what their serializer reads."""
    return Operation.objects.select_related("started_by").annotate(owner_id=of_subject("owner"))


def state_of(operation: Operation) -> Response:
    told = snapshot(operation)
    return Response(OperationAnswer(operation).data | {"event": told["event"], "progress": told["progress"]})
