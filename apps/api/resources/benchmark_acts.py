"""Acts on an existing benchmark: clone, add measures, re-score, write a manifest."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, present
from apps.api.fields import Flag, StrictSerializer, Text, Validated, VersionNumber
from apps.api.resource import find_visible, get, post
from apps.api.resources.benchmarks import KEYS, BenchmarkAnswer, BenchmarkResource, reload_benchmark
from apps.execution.defining.creating import clone, require_published
from apps.experiments.manifests import build_manifest
from apps.experiments.reproducing import reproduce
from apps.experiments.verifying import Verification, verify
from apps.mappings.models import Mapping
from apps.records.measuring.again import find_version, rescore
from apps.records.measuring.measures import MAX_MEASURES, add_measures, list_extra_measures
from apps.records.models import Benchmark
from benchbench.ir.measures.spelling import MAX_NAME_LENGTH
from benchbench.names import MAX_LENGTH


class Cloning(StrictSerializer):
    """Settings of the copy that differ."""

    name = Text(default="", max_length=MAX_LENGTH, help_text="Default: the old name, marked as a copy.")
    allow_missing = Flag(
        allow_null=True,
        default=None,
        help_text="Run module queries although the collection lacks modules. Default: as in the first benchmark.",
    )


class MeasuresRequest(StrictSerializer):
    """Measures to compute from stored rankings."""

    metrics_to_compute = serializers.ListField(
        child=Text(max_length=MAX_NAME_LENGTH),
        min_length=1,
        max_length=MAX_MEASURES,
        help_text="Such as map@10, ERR@20.",
    )


class MeasuresAnswer(serializers.Serializer):
    """The measures of a benchmark."""

    added = serializers.ListField(
        source="names", child=serializers.CharField(), help_text="The new measures, with their judged shares."
    )
    measures = serializers.ListField(child=serializers.CharField(), help_text="All, by their own names.")
    operation_uuid = serializers.UUIDField(
        source="operation.pk", allow_null=True, help_text="The operation that measures them on the queue; null if done."
    )


class Rescoring(StrictSerializer):
    """The version of the dataset to measure on."""

    version = VersionNumber(help_text="Default: the newest frozen version.")


@dataclass(frozen=True)
class RescoredAnswer:
    """The result of measuring on a version: `?version=` of the results has the values."""

    benchmark_id: UUID
    dataset_version: int
    measured_runs: Annotated[int | None, "Null: that is on the queue."]
    unsearched_queries: Annotated[int | None, "New in this version, so never searched: not in the means."]
    dropped_queries: Annotated[int | None, "No longer there."]
    operation_uuid: Annotated[UUID | None, "That measures on the queue; null: done."]
    message: str


@extend_schema_field({"type": "object", "additionalProperties": True})
class ManifestField(serializers.JSONField):
    """A manifest from a benchmark; the use case checks its content."""


class ManifestToRun(StrictSerializer):
    """A manifest to run again on the same data."""

    manifest = ManifestField(help_text="As GET …/manifest answered, here or on another site.")
    name = Text(default="", max_length=MAX_LENGTH, help_text="Default: the name in the manifest.")


class VerificationAnswer(Answer):
    """Comparison of a benchmark's values with those in the manifest that it was created from."""

    reproduces = serializers.BooleanField()

    class Meta:
        dataclass = Verification
        fields = ["reproduces", "source", "differences", "environment"]


class Acts(BenchmarkResource):
    """Acts on an existing benchmark."""

    @post(
        "/<id:benchmark_id>/clone",
        BenchmarkAnswer,
        Cloning,
        act="add",
        status=201,
        history="Copy a benchmark with its current mapping and indexes.",
    )
    def clone_benchmark(self, benchmark: Benchmark, data: Validated) -> Benchmark:
        """Copy a benchmark with its current mapping and indexes; the copy is pending and belongs to you."""
        find_visible(Mapping.objects.all(), benchmark.mapping_id, self.user)  # as for a new one
        return reload_benchmark(clone(benchmark, owner=self.user, **data))

    @post(
        "/<id:benchmark_id>/measures",
        MeasuresAnswer,
        MeasuresRequest,
        statuses=(200, 202),
        names=KEYS,
        history="Add measures to the finished runs.",
    )
    def add_measures(self, benchmark: Benchmark, data: Validated) -> Response:
        """Add measures to the finished runs, computed from stored rankings without searching.

        202 if there are too many for one request: the queue computes them, and the answer has the operation to watch.
        """
        added = add_measures(benchmark, list_extra_measures(data["metrics_to_compute"]), by=self.user)
        return present(MeasuresAnswer, added, 202 if added.operation else 200)

    @post(
        "/<id:benchmark_id>/rescore",
        RescoredAnswer,
        Rescoring,
        statuses=(200, 202),
        history="Measure the finished runs on another version of the dataset.",
    )
    def rescore_benchmark(self, benchmark: Benchmark, data: Validated) -> Response:
        """Measure the finished runs on another version of the dataset, from stored rankings.

        202 if there are too many for one request: the queue computes them, and the answer has the operation to watch.
        409 if no run has completed, or the mapping is not resolved for that version.
        """
        version = find_version(benchmark, data["version"]) if "version" in data else None
        rescored = rescore(benchmark, version=version, by=self.user)
        is_finished = rescored.operation is None
        answer = RescoredAnswer(
            benchmark_id=benchmark.pk,
            dataset_version=rescored.version.number,
            measured_runs=len(rescored.evaluations) if is_finished else None,
            unsearched_queries=rescored.unsearched if is_finished else None,
            dropped_queries=rescored.dropped if is_finished else None,
            operation_uuid=None if rescored.operation is None else rescored.operation.pk,
            message=rescored.sentence,
        )
        return present(RescoredAnswer, answer, 200 if is_finished else 202)

    @get("/<id:benchmark_id>/manifest", OpenApiTypes.OBJECT)
    def get_manifest(self, benchmark: Benchmark) -> Response:
        """Get the manifest of a benchmark, with which it can be run again; 409 before it has ended."""
        return Response(build_manifest(benchmark))

    @post(
        "/manifest",
        BenchmarkAnswer,
        ManifestToRun,
        act="add",
        status=201,
        history="Create a pending benchmark from a manifest.",
    )
    def run_manifest(self, data: Validated) -> Benchmark:
        """Create a pending benchmark from a manifest; its data is found on this site by content hash.

        400 if it is not a manifest, or its data is missing here; the error names what is missing or differs.
        """
        if isinstance(data["manifest"], dict):
            require_published(data["manifest"].get("matrix"))
        return reload_benchmark(reproduce(data["manifest"], owner=self.user, name=data["name"]))

    @get("/<id:benchmark_id>/verification", VerificationAnswer)
    def verify_benchmark(self, benchmark: Benchmark) -> Verification:
        """Compare a benchmark with the manifest that it was created from; 409 without one, and before it has ended."""
        return verify(benchmark)
