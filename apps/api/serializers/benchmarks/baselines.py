"""Baselines on the wire."""

from rest_framework import serializers

from apps.api.fields import Flag, Identifier, Moment, StrictSerializer, Text
from apps.api.paging import Page, PageQuery


class NewBaseline(StrictSerializer):
    """A run that other runs of its dataset will be compared with."""

    run_id = Identifier(help_text="A completed run of the dataset.")
    name = Text(
        max_length=200, help_text="Its name in rules and commands. The current baseline of that name is retired."
    )
    reason = Text(max_length=10_000, help_text="Why other runs may be compared with this run.")


class BaselineQuery(PageQuery):
    """Which page of which baselines."""

    retired = Flag(required=False, help_text="true: only retired ones; false: only current ones; default: all.")


class BaselineFacts(serializers.Serializer):
    """A baseline in the API; it is current until it is retired."""

    id = serializers.UUIDField()
    dataset_id = serializers.UUIDField()
    name = serializers.CharField()
    reason = serializers.CharField()
    benchmark_id = serializers.UUIDField(source="run.benchmark_id")
    run_id = serializers.UUIDField()
    run_label = serializers.CharField(source="run.label")
    approved_by = serializers.CharField(
        source="approved_by.username", allow_null=True, help_text="A user; null: the user was deleted."
    )
    approved_at = Moment(source="created_at")
    retired_by = serializers.CharField(
        source="retired_by.username", allow_null=True, help_text="A user; null while it is current."
    )
    retired_at = Moment(allow_null=True)


class BaselinePage(Page):
    """A page of baselines."""

    baselines = BaselineFacts(many=True)
