"""Datasets as files, on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice, Identifier, StrictSerializer, VersionNumber
from apps.datasets.formats.registry import WRITERS


class ExportQuery(StrictSerializer):
    """What is downloaded, and how documents are named in it."""

    format = Choice(list(WRITERS))
    version = VersionNumber(help_text="Default: the newest frozen version.")
    mapping_id = Identifier(required=False, help_text="Of the dataset, resolved for the version.")


class UploadFormat(serializers.Serializer):
    """A format that is read."""

    name = serializers.CharField()
    label = serializers.CharField()


class ExportFormat(UploadFormat):
    """A format that is written; a directory comes as a zip."""

    content_type = serializers.CharField()
    extension = serializers.CharField()


class DatasetFormats(serializers.Serializer):
    """Formats by the names that `format` takes."""

    uploads = UploadFormat(many=True)
    exports = ExportFormat(many=True)
