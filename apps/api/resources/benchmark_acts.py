"""Acts on an existing benchmark: clone, add measures, re-score, write a manifest."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer, present
from apps.api.endpoint import Endpoint, find_visible
from apps.api.errors import naming
from apps.api.fields import Flag, StrictSerializer, Text, VersionNumber, valid
from apps.api.resources.benchmarks import KEYS, BenchmarkAnswer, find, shown
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
        extra_kwargs = {
            "source": {"help_text": "The name of the first benchmark."},
            "differences": {"help_text": "A sentence for each run."},
            "environment": {"help_text": "What else was different."},
        }


class Clone(Endpoint):
    model = Benchmark
    acts = {"POST": "add"}

    @extend_schema(operation_id="clone_benchmark", request=Cloning, responses={201: BenchmarkAnswer})
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Make the benchmark once more, pending, on the mapping and the indexes as they are now; it is then yours."""
        benchmark = find(request, benchmark_id)
        find_visible(Mapping.objects.all(), benchmark.mapping_id, request.user)  # as for a new one
        data = valid(Cloning, request.data)
        return Response(shown(clone(benchmark, owner=request.user, **data)), status=201)


class Measures(Endpoint):
    model = Benchmark

    @extend_schema(
        operation_id="add_measures", request=MeasuresWanted, responses={200: MeasuresAnswer, 202: MeasuresAnswer}
    )
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Measure the finished runs by further measures too, from the rankings that are stored; nothing is searched.

        202 where these are so many that it is left to the queue, with the operation to watch.
        """
        benchmark = find(request, benchmark_id)
        data = valid(MeasuresWanted, request.data)
        with naming(**KEYS):
            added = add_measures(benchmark, besides_the_usual(data["metrics_to_compute"]), by=request.user)
        return Response(MeasuresAnswer(added).data, status=202 if added.operation else 200)


class Rescore(Endpoint):
    model = Benchmark

    @extend_schema(
        operation_id="rescore_benchmark",
        request=Rescoring,
        responses=dict.fromkeys((200, 202), RescoredAnswer),
    )
    def post(self, request: Request, benchmark_id: UUID) -> Response:
        """Measure the finished runs on another version of the dataset, from the rankings that are stored.

        202 where these are so many that it is left to the queue, with the operation to watch. 409 where none has
        completed, and where the mapping was not resolved for that version.
        """
        benchmark = find(request, benchmark_id)
        number = valid(Rescoring, request.data).get("version")
        version = None if number is None else find_version(benchmark, number)
        rescored = rescore(benchmark, version=version, by=request.user)
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
        return present(answer, status=200 if done else 202)


class Manifest(Endpoint):
    model = Benchmark

    @extend_schema(operation_id="get_manifest", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, benchmark_id: UUID) -> Response:
        """Show the manifest of a benchmark, from which it can be run again; 409 before it has ended."""
        return Response(manifest_of(find(request, benchmark_id)))


class RunManifest(Endpoint):
    model = Benchmark
    acts = {"POST": "add"}

    @extend_schema(operation_id="run_manifest", request=ManifestToRun, responses={201: BenchmarkAnswer})
    def post(self, request: Request) -> Response:
        """Make the benchmark of a manifest again, pending, on the same data, which is found here by its content.

        400 where it is not a manifest, or its data is not here; the sentence says what is missing or differs.
        """
        data = valid(ManifestToRun, request.data)
        if isinstance(data["manifest"], dict):
            require_published(data["manifest"].get("matrix"))
        made = benchmark_from(data["manifest"], owner=request.user, name=data["name"])
        return Response(shown(made), status=201)


class Verified(Endpoint):
    model = Benchmark

    @extend_schema(operation_id="verify_benchmark", responses=VerificationAnswer)
    def get(self, request: Request, benchmark_id: UUID) -> Response:
        """Compare a benchmark with the manifest that it was run from; 409 without one, and before it has ended."""
        return Response(VerificationAnswer(verify(find(request, benchmark_id))).data)
