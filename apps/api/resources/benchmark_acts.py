"""Acts on an existing benchmark: clone, add measures, re-score, write a manifest."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from apps.api.answers import Answer, present
from apps.api.fields import Flag, StrictSerializer, Text, VersionNumber
from apps.api.resource import Resource, find_visible, get, post
from apps.api.resources.benchmarks import KEYS, BenchmarkAnswer, shown
from apps.benchmarks.defining.creating import clone, require_published
from apps.benchmarks.measuring.again import find_version, rescore
from apps.benchmarks.measuring.measures import LONGEST, MOST, add_measures, besides_the_usual
from apps.benchmarks.models import Benchmark
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.repeating.verifying import Verification, verify
from apps.mappings.models import Mapping
from benchbench.names import MAX_LENGTH


class Cloning(StrictSerializer):
    """Settings of the copy that differ."""

    name = Text(default="", max_length=MAX_LENGTH, help_text="Default: the old name, marked as a copy.")
    allow_missing = Flag(
        allow_null=True,
        default=None,
        help_text="Run module queries although the collection lacks modules. Default: as in the first benchmark.",
    )


class MeasuresWanted(StrictSerializer):
    """Measures to be computed from the rankings that are stored."""

    metrics_to_compute = serializers.ListField(
        child=Text(max_length=LONGEST), min_length=1, max_length=MOST, help_text="Such as map@10, ERR@20."
    )


class MeasuresAnswer(serializers.Serializer):
    """The measures of a benchmark."""

    added = serializers.ListField(
        source="names", child=serializers.CharField(), help_text="The new measures, with their judged shares."
    )
    measures = serializers.ListField(child=serializers.CharField(), help_text="All, by their own names.")
    operation_uuid = serializers.UUIDField(
        source="operation.pk", allow_null=True, help_text="That measures them on the queue; null: done."
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
    """A manifest as another benchmark wrote it: the use case checks what it holds."""


class ManifestToRun(StrictSerializer):
    """A manifest, whose benchmark is to be made again on the same data."""

    manifest = ManifestField(help_text="As GET …/manifest answered, here or on another site.")
    name = Text(default="", max_length=MAX_LENGTH, help_text="Default: the name in the manifest.")


class VerificationAnswer(Answer):
    """Whether a benchmark repeats every value of the manifest that it was run from, to the last bit."""

    reproduces = serializers.BooleanField()

    class Meta:
        dataclass = Verification
        fields = ["reproduces", "source", "differences", "environment"]


class Acts(Resource):
    """Acts on an existing benchmark."""

    model = Benchmark
    route = "benchmarks"

    def rows(self) -> QuerySet[Benchmark]:
        return Benchmark.objects.select_related("mapping__collection")

    @post("/<id:benchmark_id>/clone", BenchmarkAnswer, Cloning, act="add", status=201)
    def clone_benchmark(self, benchmark: Benchmark, data: dict[str, Any]) -> Benchmark:
        """Make the benchmark once more, pending, on the mapping and the indexes as they are now; it is then yours."""
        find_visible(Mapping.objects.all(), benchmark.mapping_id, self.user)  # as for a new one
        return shown(clone(benchmark, owner=self.user, **data))

    @post("/<id:benchmark_id>/measures", MeasuresAnswer, MeasuresWanted, statuses=(200, 202), names=KEYS)
    def add_measures(self, benchmark: Benchmark, data: dict[str, Any]) -> Response:
        """Measure the finished runs by further measures too, from the rankings that are stored; nothing is searched.

        202 where these are so many that it is left to the queue, with the operation to watch.
        """
        added = add_measures(benchmark, besides_the_usual(data["metrics_to_compute"]), by=self.user)
        return present(MeasuresAnswer, added, 202 if added.operation else 200)

    @post("/<id:benchmark_id>/rescore", RescoredAnswer, Rescoring, statuses=(200, 202))
    def rescore_benchmark(self, benchmark: Benchmark, data: dict[str, Any]) -> Response:
        """Measure the finished runs on another version of the dataset, from the rankings that are stored.

        202 where these are so many that it is left to the queue, with the operation to watch. 409 where none has
        completed, and where the mapping was not resolved for that version.
        """
        version = find_version(benchmark, data["version"]) if "version" in data else None
        rescored = rescore(benchmark, version=version, by=self.user)
        done = rescored.operation is None
        answer = RescoredAnswer(
            benchmark_id=benchmark.pk,
            dataset_version=rescored.version.number,
            measured_runs=len(rescored.evaluations) if done else None,
            unsearched_queries=rescored.unsearched if done else None,
            dropped_queries=rescored.dropped if done else None,
            operation_uuid=None if rescored.operation is None else rescored.operation.pk,
            message=rescored.sentence,
        )
        return present(RescoredAnswer, answer, 200 if done else 202)

    @get("/<id:benchmark_id>/manifest", OpenApiTypes.OBJECT)
    def get_manifest(self, benchmark: Benchmark) -> Response:
        """Show the manifest of a benchmark, from which it can be run again; 409 before it has ended."""
        return Response(manifest_of(benchmark))

    @post("/manifest", BenchmarkAnswer, ManifestToRun, act="add", status=201)
    def run_manifest(self, data: dict[str, Any]) -> Benchmark:
        """Make the benchmark of a manifest again, pending, on the same data, which is found here by its content.

        400 where it is not a manifest, or its data is not here; the sentence says what is missing or differs.
        """
        if isinstance(data["manifest"], dict):
            require_published(data["manifest"].get("matrix"))
        return shown(benchmark_from(data["manifest"], owner=self.user, name=data["name"]))

    @get("/<id:benchmark_id>/verification", VerificationAnswer)
    def verify_benchmark(self, benchmark: Benchmark) -> Verification:
        """Compare a benchmark with the manifest that it was run from; 409 without one, and before it has ended."""
        return verify(benchmark)
