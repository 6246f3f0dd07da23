"""Operations on the wire, in the words of the WebSocket (docs/events.md)."""

from rest_framework import serializers

from apps.api.fields import Choice, Moment
from apps.api.paging import Page, PageQuery
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
    subject_id = serializers.UUIDField(help_text="The benchmark, mapping, index or judging round of the operation.")
    owner_id = serializers.IntegerField(
        allow_null=True, help_text="Owner of the subject; null: the whole staff, or the subject was deleted."
    )
    started_by = serializers.CharField(
        source="started_by.username",
        allow_null=True,
        help_text="The user whose quota it counts against; null: a command without an owner, or the user was deleted.",
    )
    queue = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    error = serializers.SerializerMethodField(help_text="Why it failed.")
    created_at = Moment()
    started_at = Moment(allow_null=True, help_text="When a worker started it.")
    finished_at = Moment(allow_null=True)

    def get_error(self, operation: Operation) -> str | None:
        return operation.error or None


class OperationPage(Page):
    """A page of operations."""

    operations = OperationFacts(many=True)


class OperationState(OperationFacts):
    """An operation with its progress: what the WebSocket says first, as `current_state`."""

    event = serializers.CharField(help_text="The type of its events.")
    progress = serializers.DictField(help_text="The data of such an event, by docs/events.md.")
