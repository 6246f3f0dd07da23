"""Operations: list, look, cancel."""

from django.db.models import Model, QuerySet
from rest_framework import serializers

from apps.api.answers import ModelAnswer, TextOrNull, build_page
from apps.api.fields import PageQuery, Validated
from apps.api.resource import Resource, get, post
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation, Status, of_subject
from apps.operations.progress import snapshot

KINDS = Operation.Kind.values


class OperationQuery(PageQuery):
    """Query parameters for listing operations."""

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
            *("operation_id", "kind", "subject_id", "owner_id", "started_by", "queue", "priority", "status", "error"),
            *("created_at", "started_at", "finished_at"),
        ]
        extra_kwargs = {"started_at": {"help_text": "When a worker started it."}}


OperationPage = build_page("operations", OperationAnswer)


class OperationState(OperationAnswer):
    """An operation with its progress; the WebSocket sends it first, as `current_state`."""

    event = serializers.CharField(help_text="The type of its events.")
    progress = serializers.DictField(help_text="The data of such an event, by docs/events.md.")

    class Meta(OperationAnswer.Meta):
        fields = [*OperationAnswer.Meta.fields, "event", "progress"]


class Operations(Resource):
    model = Operation
    route = "operations"

    @get("", OperationPage, OperationQuery)
    def list_operations(self, query: Validated) -> QuerySet[Operation]:
        """List operations, newest first, also by status or kind."""
        fields = {"status": query.get("status_filter"), "kind": query.get("kind")}
        return self.newest().filter(**{key: value for key, value in fields.items() if value})

    @get("/<id:operation_id>", OperationState)
    def get_operation(self, operation: Operation) -> Operation:
        """Show an operation, with its whole progress."""
        return add_progress(operation)

    @post("/<id:operation_id>/cancel", OperationState, history="Cancel an operation.")
    def cancel_operation(self, operation: Operation) -> Operation:
        """Cancel an operation: workers stop after their batch, whose results stay. 409 after its end."""
        cancel_operation(operation)
        return add_progress(operation)

    def list_affected(self, row: Operation) -> list[Model]:
        return [row.subject] if row.subject else []

    def rows(self) -> QuerySet[Operation]:
        return Operation.objects.select_related("started_by").annotate(owner_id=of_subject("owner"))


def add_progress(operation: Operation) -> Operation:
    state = snapshot(operation)
    vars(operation).update(event=state["event"], progress=state["progress"])
    return operation
