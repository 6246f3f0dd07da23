"""Baselines on the wire."""

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from apps.api.paging import Page, PageQuery
from apps.api.serializers.base import Flag, Identifier, StrictSerializer, Text, asked


@asked(
    "The best run of a nightly benchmark",
    {"run_id": "3b0f3f0e-7a8e-4f0e-9d66-0f6b6a5d4c22", "name": "main", "reason": "The best so far, and twice as fast."},
)
class NewBaseline(StrictSerializer):
    """A run that others of its dataset are to be held against."""

    run_id = Identifier(help_text="A completed run of the dataset.")
    name = Text(
        max_length=200, help_text="What rules and commands call it. The baseline of that name so far is retired."
    )
    reason = Text(max_length=10_000, help_text="Why this run may be what others are held against.")


class BaselineQuery(PageQuery):
    """Which page of which baselines."""

    retired = Flag(required=False, help_text="true: the retired ones alone; false: the current ones; without: all.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A baseline",
            {
                "id": "4a1c7c5e-2b56-4d4e-9c53-6f9d1c1e2b11",
                "dataset_id": "0c2d4b1e-6f0a-4b6e-9a52-3d1f6f1f8b11",
                "name": "main",
                "reason": "The release of May.",
                "benchmark_id": "8a6f6a52-7c3a-4f5e-9c5f-0a6a4f2f9e77",
                "run_id": "c1f1f9a0-8a43-4f44-8f53-0c4b7e3d0f55",
                "run_label": "hybrid · top 100",
                "approved_by": "ada",
                "approved_at": "2026-11-02T09:30:00Z",
                "retired_by": None,
                "retired_at": None,
            },
            response_only=True,
        )
    ]
)
class BaselineFacts(serializers.Serializer):
    """A baseline as the API tells it; it is current until it is retired."""

    id = serializers.UUIDField()
    dataset_id = serializers.UUIDField()
    name = serializers.CharField()
    reason = serializers.CharField()
    benchmark_id = serializers.UUIDField(source="run.benchmark_id")
    run_id = serializers.UUIDField()
    run_label = serializers.CharField(source="run.label")
    approved_by = serializers.CharField(
        source="approved_by.username", allow_null=True, help_text="A user; null: deleted since."
    )
    approved_at = serializers.DateTimeField(source="created_at")
    retired_by = serializers.CharField(
        source="retired_by.username", allow_null=True, help_text="A user; null while it is current."
    )
    retired_at = serializers.DateTimeField(allow_null=True)


class BaselinePage(Page):
    """A page of baselines."""

    baselines = BaselineFacts(many=True)
