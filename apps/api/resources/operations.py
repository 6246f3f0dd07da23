"""Operations: list, look, cancel."""

from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.access.addressed import find_visible
from apps.api.endpoint import Endpoint
from apps.api.fields import require_empty, valid
from apps.api.idempotency import idempotent
from apps.api.paging import answer_page
from apps.api.serializers.operations import OperationFacts, OperationPage, OperationQuery, OperationState
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.sockets.snapshots import snapshot
from apps.operations.subjects import of_subject
from benchbench.access import visible


class Operations(Endpoint):
    model = Operation
    acts = {"GET": "view"}

    @extend_schema(operation_id="list_operations", parameters=[OperationQuery], responses=OperationPage)
    def get(self, request: Request) -> Response:
        """List operations, newest first; those of a status, or of a kind."""
        query = valid(OperationQuery, request.query_params)
        rows = visible(told_rows().order_by("-created_at", "id"), request.user)
        fields = {"status": query.get("status_filter"), "kind": query.get("kind")}
        return answer_page(OperationPage, rows.filter(**{key: value for key, value in fields.items() if value}), query)


class OneOperation(Endpoint):
    model = Operation
    acts = {"GET": "view"}

    @extend_schema(operation_id="get_operation", responses=OperationState)
    def get(self, request: Request, operation_id: UUID) -> Response:
        """Show an operation, with its whole progress."""
        return state_of(find_visible(told_rows(), operation_id, request.user))


class OperationCancel(Endpoint):
    model = Operation
    acts = {"POST": "change"}

    @extend_schema(operation_id="cancel_operation", request=None, responses=OperationState)
    @idempotent
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
    return Response(OperationFacts(operation).data | {"event": told["event"], "progress": told["progress"]})
