"""Results as files, and the formats of those."""

import json
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.answers import Answer
from apps.api.endpoint import Endpoint, find_visible
from apps.api.fields import valid
from apps.api.openapi import WARNINGS, file_headers
from apps.api.resources.results import VersionQuery
from apps.benchmarks.models import Benchmark, Run
from apps.results.exporting import EXPORTERS, Exporter, export, file_name, lost_failures
from benchbench.local_files.placing import write_pieces
from benchbench.site.downloads import attachment


def formats_of(kind: str) -> list[str]:
    return [exporter.name for exporter in EXPORTERS.values() if exporter.exports == kind]


class BenchmarkExportQuery(VersionQuery):
    """What of a benchmark is downloaded."""

    format = serializers.ChoiceField(formats_of("benchmark"))


class RunExportQuery(VersionQuery):
    """What of a run is downloaded."""

    format = serializers.ChoiceField(formats_of("run"))


class ResultsFormat(Answer):
    """A format that results are written in; a directory comes as a zip."""

    label = serializers.CharField(source="title")

    class Meta:
        dataclass = Exporter
        fields = ["name", "label", "exports", "content_type", "extension", "marks_failures"]
        extra_kwargs = {
            "exports": {"help_text": "What it exports."},
            "marks_failures": {"help_text": "Whether it can mark failed queries; if not, they are left out."},
        }


class ResultsFormats(serializers.Serializer):
    """Formats by the names that `format` takes."""

    formats = ResultsFormat(many=True)


class Formats(Endpoint):
    model = Benchmark

    @extend_schema(operation_id="list_export_formats", responses=ResultsFormats)
    def get(self, request: Request) -> Response:
        """List the formats that the results of benchmarks and runs are written in."""
        return Response(ResultsFormats({"formats": EXPORTERS.values()}).data)


def files_of(kind: str) -> dict[Any, Any]:
    """Return the answers of an export as the schema has them: a file of any type that a format has, or a conflict."""
    types = sorted({exporter.content_type for exporter in EXPORTERS.values() if exporter.exports == kind})
    shapes = {"application/json": OpenApiTypes.ANY}
    return {(200, name): shapes.get(name, OpenApiTypes.BINARY) for name in types}


TOLD_BESIDE = file_headers("what the format cannot say, such as that a query failed.")


class BenchmarkExport(Endpoint):
    model = Benchmark

    @extend_schema(
        operation_id="export_benchmark",
        parameters=[BenchmarkExportQuery, *TOLD_BESIDE],
        responses=files_of("benchmark"),
        tags=["exports"],
    )
    def get(self, request: Request, benchmark_id: UUID) -> HttpResponseBase:
        """Download the results of a benchmark; 409 before it has ended."""
        benchmark = find_visible(Benchmark.objects.all(), benchmark_id, request.user)
        return file_of(benchmark, **valid(BenchmarkExportQuery, request.query_params))


class RunExport(Endpoint):
    model = Run

    @extend_schema(
        operation_id="export_run",
        parameters=[RunExportQuery, *TOLD_BESIDE],
        responses=files_of("run"),
        tags=["exports"],
    )
    def get(self, request: Request, benchmark_id: UUID, run_id: UUID) -> HttpResponseBase:
        """Download the results of a run; 409 where it has none."""
        benchmark = find_visible(Benchmark.objects.all(), benchmark_id, request.user)
        run = find_visible(benchmark.runs.select_related("benchmark"), run_id, request.user, through="benchmark")
        return file_of(run, **valid(RunExportQuery, request.query_params))


def file_of(subject: Benchmark | Run, *, format: str, version: int | None = None) -> HttpResponseBase:
    """Answer with a file, which is whole before the answer begins: an error is never a file that breaks off."""
    exporter = EXPORTERS[format]
    answer = attachment(
        lambda file: write_pieces(export(subject, format, version=version), file),
        file_name(subject, exporter, version=version),
        exporter.content_type,
    )
    lost = lost_failures(subject, exporter, version=version)
    answer[WARNINGS] = json.dumps([lost] if lost else [])  # in ASCII, as a header must be
    return answer
