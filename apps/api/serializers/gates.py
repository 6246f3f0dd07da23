"""Gates on the wire."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from apps.api.serializers.base import AnyValue, StrictSerializer, Text, asked

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
        if data == "all" or (isinstance(data, int) and not isinstance(data, bool)):
            return data
        raise serializers.ValidationError('run must be the number of a run, such as 3, or "all".')


@asked(
    "A floor, and no loss against the baseline",
    {"rules": {"floors": {"mrr": 0.5}, "against_baseline": {"nDCG@10": {"may_lose": 0.01}}}, "baseline": "main"},
)
class GateRules(StrictSerializer):
    """The rules by which a run is judged."""

    rules = RulesField()
    baseline = Text(required=False, allow_null=True, default=None, help_text="Name or id of a current baseline.")


@asked("A floor for every run", {"rules": "floors:\n  mrr: 0.5\n", "run": "all"})
class BenchmarkGateRules(GateRules):
    """The rules by which runs of a benchmark are judged."""

    run = RunField(required=False, allow_null=True, default=None, help_text="Without it the best run is judged.")


class CheckFacts(serializers.Serializer):
    """What came of one rule."""

    name = serializers.CharField()
    wanted = serializers.CharField(allow_blank=True)
    found = serializers.CharField(allow_blank=True)
    outcome = serializers.ChoiceField(OUTCOMES)
    n = serializers.IntegerField(allow_null=True, help_text="Queries that the check looked at.")
    value = serializers.FloatField(allow_null=True)
    note = serializers.CharField(allow_blank=True)


class RunVerdictFacts(serializers.Serializer):
    """A run, and what came of each rule."""

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
    """The baseline that runs were held against."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    run = serializers.UUIDField()
    label = serializers.CharField()


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A gate that passed",
            {
                "outcome": "passed",
                "benchmark": {"id": "8a6f6a52-7c3a-4f5e-9c5f-0a6a4f2f9e77", "name": "nightly"},
                "dataset_version": "Support questions v1",
                "baseline": None,
                "alpha": 0.05,
                "chosen": "the only completed run",
                "warnings": [],
                "runs": [
                    {
                        "id": "c1f1f9a0-8a43-4f44-8f53-0c4b7e3d0f55",
                        "run_order": 1,
                        "label": "hybrid · top 100",
                        "config": {"search_mode": "hybrid", "top_k": 100},
                        "outcome": "passed",
                        "checks": [
                            {
                                **{"name": "RR", "wanted": "at least 0.7", "found": "0.7510", "outcome": "passed"},
                                **{"n": 120, "value": 0.751, "note": ""},
                            }
                        ],
                    }
                ],
                "markdown": "## Gate passed: all 1 checks\n…",
            },
            response_only=True,
        )
    ]
)
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
