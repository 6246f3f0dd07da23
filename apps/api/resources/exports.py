"""Results as files, and the formats of those."""

import json

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers

from apps.api.answers import Answer
from apps.api.fields import Validated
from apps.api.openapi import WARNINGS, list_file_headers
from apps.api.resource import Resource, get
from apps.api.resources.results import BenchmarkRuns, VersionQuery
from apps.records.models import Benchmark, Run
from apps.results.exporting import EXPORTERS, Exporter, describe_failures, export, name_file
from benchbench.local_files.placing import write_pieces
from benchbench.site.downloads import attachment


def list_formats(kind: str) -> list[str]:
    return [exporter.name for exporter in EXPORTERS.values() if exporter.exports == kind]


class BenchmarkExportQuery(VersionQuery):
    """Query parameters for exporting a benchmark."""

    format = serializers.ChoiceField(list_formats("benchmark"))


class RunExportQuery(VersionQuery):
    """Query parameters for exporting a run."""

    format = serializers.ChoiceField(list_formats("run"))


class ResultsFormat(Answer):
    """A format of results; a directory comes as a zip."""

    label = serializers.CharField(source="title")

    class Meta:
        dataclass = Exporter
        fields = ["name", "label", "exports", "content_type", "extension", "marks_failures"]


class ResultsFormats(serializers.Serializer):
    """Formats by the names that `format` takes."""

    formats = ResultsFormat(many=True)


def build_responses(kind: str) -> dict[tuple[int, str], object]:
    """Return the responses of an export for the schema: a file of each format's type, or a conflict."""
    types = sorted({exporter.content_type for exporter in EXPORTERS.values() if exporter.exports == kind})
    shapes = {"application/json": OpenApiTypes.ANY}
    return {(200, name): shapes.get(name, OpenApiTypes.BINARY) for name in types}


TAGS = ["exports"]
HEADERS = list_file_headers("what the format cannot say, such as that a query failed.")


class Formats(Resource):
    model = Benchmark

    @get("export-formats", ResultsFormats, tags=TAGS)
    def list_export_formats(self) -> dict[str, object]:
        """List the formats for the results of benchmarks and runs."""
        return {"formats": EXPORTERS.values()}


class BenchmarkExports(Resource):
    model = Benchmark
    route = "benchmarks/<id:benchmark_id>"

    @get("/export", build_responses("benchmark"), BenchmarkExportQuery, parameters=HEADERS, tags=TAGS)
    def export_benchmark(self, benchmark: Benchmark, query: Validated) -> HttpResponseBase:
        """Download the results of a benchmark; 409 before it has ended."""
        return build_file(benchmark, **query)


class RunExports(BenchmarkRuns):
    @get("/export", build_responses("run"), RunExportQuery, parameters=HEADERS, tags=TAGS)
    def export_run(self, run: Run, query: Validated) -> HttpResponseBase:
        """Download the results of a run; 409 before it has any."""
        return build_file(run, **query)


def build_file(subject: Benchmark | Run, *, format: str, version: int | None = None) -> HttpResponseBase:
    """Answer with a file, complete before the answer begins, so that no error truncates it."""
    exporter = EXPORTERS[format]
    answer = attachment(
        lambda file: write_pieces(export(subject, format, version=version), file),
        name_file(subject, exporter, version=version),
        exporter.content_type,
    )
    lost = describe_failures(subject, exporter, version=version)
    answer[WARNINGS] = json.dumps([lost] if lost else [])  # in ASCII, as a header must be
    return answer
