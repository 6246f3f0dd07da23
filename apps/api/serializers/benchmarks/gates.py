"""Gates on the wire."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.fields import AnyValue, StrictSerializer, Text, as_whole
from benchbench.ir.profiles import Mean

OUTCOMES = ["passed", "failed", "undecided"]


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}]})
class RulesField(AnyValue):
    """Rules of a gate, as docs/gates.md describes them: a YAML text, or the same as an object."""

    default_error_messages = {
        "required": "State rules: a YAML text, or the same as an object.",
        "null": "State rules: a YAML text, or the same as an object.",
    }

    def to_internal_value(self, data: Any) -> str | dict[str, Any]:
        if isinstance(data, str | dict):
            return data
        raise serializers.ValidationError(self.error_messages["required"])


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string", "const": "all"}, {"type": "null"}]})
class RunField(AnyValue):
    """A run by its number, or "all"."""

    def to_internal_value(self, data: Any) -> int | str:
        value = as_whole(data)
        if value == "all" or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise serializers.ValidationError('run must be the number of a run, such as 3, or "all".')


class GateRules(StrictSerializer):
    """The rules by which a run is judged."""

    rules = RulesField()
    baseline = Text(required=False, allow_null=True, default=None, help_text="Name or id of a current baseline.")


class BenchmarkGateRules(GateRules):
    """The rules by which runs of a benchmark are judged."""

    run = RunField(required=False, allow_null=True, default=None, help_text="Default: the best run.")


class CheckFacts(serializers.Serializer):
    """The result of one rule."""

    name = serializers.CharField()
    wanted = serializers.CharField(allow_blank=True)
    found = serializers.CharField(allow_blank=True)
    outcome = serializers.ChoiceField(OUTCOMES)
    n = serializers.IntegerField(allow_null=True, help_text="Queries that the check looked at.")
    value = serializers.FloatField(allow_null=True)
    mean = serializers.ChoiceField(list(map(str, Mean)), allow_null=True, help_text="Which mean a floor is on.")
    note = serializers.CharField(allow_blank=True)


class RunVerdictFacts(serializers.Serializer):
    """A run, and the result of each rule."""

    id = serializers.UUIDField()
    run_order = serializers.IntegerField()
    label = serializers.CharField()
    config = serializers.DictField()
    outcome = serializers.ChoiceField(OUTCOMES)
    checks = CheckFacts(many=True)


class GatedBenchmarkFacts(serializers.Serializer):
    """The benchmark whose runs were judged."""

    id = serializers.UUIDField()
    name = serializers.CharField()


class GateBaselineFacts(serializers.Serializer):
    """The baseline that runs were compared with."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    run = serializers.UUIDField()
    label = serializers.CharField()


class GateFacts(serializers.Serializer):
    """The outcome of a gate, and how it came about."""

    outcome = serializers.ChoiceField(OUTCOMES)
    benchmark = GatedBenchmarkFacts()
    dataset_version = serializers.CharField()
    baseline = GateBaselineFacts(allow_null=True)
    alpha = serializers.FloatField()
    chosen = serializers.CharField(help_text="How the judged runs were chosen.")
    warnings = serializers.ListField(child=serializers.CharField())
    runs = RunVerdictFacts(many=True)
    markdown = serializers.CharField(help_text="The same as a comment for a pull request.")
