"""Acts on an existing benchmark, on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import AnyValue, Flag, ListOf, StrictSerializer, Text, VersionNumber
from apps.benchmarks.measuring.measures import LONGEST, MOST
from benchbench.names import MAX_LENGTH


class Cloning(StrictSerializer):
    """Settings of the copy that differ."""

    name = Text(required=False, default="", max_length=MAX_LENGTH, help_text="Default: the old name, marked as a copy.")
    allow_missing = Flag(
        required=False,
        allow_null=True,
        default=None,
        help_text="Run module queries although the collection lacks modules. Default: as in the first benchmark.",
    )


class MeasuresWanted(StrictSerializer):
    """Measures to be computed from the rankings that are stored."""

    metrics_to_compute = ListOf(
        child=Text(max_length=LONGEST), min_length=1, max_length=MOST, help_text="Such as map@10, ERR@20."
    )


class MeasuresFacts(serializers.Serializer):
    """What a benchmark is measured by."""

    added = serializers.ListField(
        child=serializers.CharField(), help_text="The new measures, with their judged shares."
    )
    measures = serializers.ListField(child=serializers.CharField(), help_text="All, by their own names.")
    operation_uuid = serializers.UUIDField(allow_null=True, help_text="That measures them on the queue; null: done.")


class Rescoring(StrictSerializer):
    """The version of the dataset to measure on."""

    version = VersionNumber(help_text="Default: the newest frozen version.")


class RescoredFacts(serializers.Serializer):
    """The result of measuring on a version: `?version=` of the results has the values."""

    benchmark_id = serializers.UUIDField()
    dataset_version = serializers.IntegerField(min_value=1)
    measured_runs = serializers.IntegerField(min_value=1, allow_null=True, help_text="Null: that is on the queue.")
    unsearched_queries = serializers.IntegerField(
        min_value=0, allow_null=True, help_text="New in this version, so never searched: not in the means."
    )
    dropped_queries = serializers.IntegerField(min_value=0, allow_null=True, help_text="No longer there.")
    operation_uuid = serializers.UUIDField(allow_null=True, help_text="That measures on the queue; null: done.")
    message = serializers.CharField()


@extend_schema_field({"type": "object", "additionalProperties": True})
class ManifestField(AnyValue):
    """A manifest as another benchmark told it: what it holds is judged by the use case."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class ManifestToRun(StrictSerializer):
    """A manifest, whose benchmark is to be made again on the same data."""

    manifest = ManifestField(help_text="As GET …/manifest answered, here or on another site.")
    name = Text(required=False, default="", max_length=MAX_LENGTH, help_text="Default: the name in the manifest.")


class VerificationFacts(serializers.Serializer):
    """Whether a benchmark repeats every value of the manifest that it was run from, to the last bit."""

    reproduces = serializers.BooleanField()
    source = serializers.CharField(help_text="The name of the first benchmark.")
    differences = serializers.ListField(child=serializers.CharField(), help_text="A sentence for each run.")
    environment = serializers.ListField(child=serializers.CharField(), help_text="What else was different.")
