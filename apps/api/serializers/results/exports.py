"""Results as files, on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice
from apps.api.serializers.results.results import VersionQuery
from apps.results.exporters import EXPORTERS


def formats_of(kind: str) -> list[str]:
    return [exporter.name for exporter in EXPORTERS.values() if exporter.exports == kind]


class BenchmarkExportQuery(VersionQuery):
    """What of a benchmark is downloaded."""

    format = Choice(formats_of("benchmark"))


class RunExportQuery(VersionQuery):
    """What of a run is downloaded."""

    format = Choice(formats_of("run"))


class ResultsFormat(serializers.Serializer):
    """A format that results are written in; a directory comes as a zip."""

    name = serializers.CharField()
    label = serializers.CharField(source="title")
    exports = serializers.ChoiceField(["benchmark", "run"], help_text="What it exports.")
    content_type = serializers.CharField()
    extension = serializers.CharField()
    marks_failures = serializers.BooleanField(
        help_text="Whether it can mark failed queries; if not, they are left out."
    )


class ResultsFormats(serializers.Serializer):
    """Formats by the names that `format` takes."""

    formats = ResultsFormat(many=True)
