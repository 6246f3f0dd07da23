"""Bodies of requests, and the choice of a parser for them."""

from collections.abc import Sequence
from typing import Any, BinaryIO, ClassVar

from django.conf import settings
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request

from benchbench.errors import BenchbenchError
from benchbench.reading import strict_json

FORM_BYTES = 2**20  # the most bytes of a form apart from its file


class TooLargeError(BenchbenchError):
    """The body exceeds the size limit of a request."""

    code = "too_large"
    status = 413


class StrictJSONParser(BaseParser):
    """Parser of strict JSON: repeated keys, NaN and deep nesting are errors."""

    media_type = "application/json"

    def parse(
        self, stream: BinaryIO, media_type: str | None = None, parser_context: dict[str, Any] | None = None
    ) -> Any:
        """Raise TooLargeError past Django's limit, which Django applies only to bodies that it reads itself."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        content = stream.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(f"The body has more than {limit:,} bytes, the most that a request may have.")
        return strict_json.parse(strict_json.decode(content, location="The body"), location="The body")


class UploadParser(MultiPartParser):
    """Parser of a form with a file. It refuses a form that is too large before reading it.

    A subclass names the setting that limits its file, and the remedy for larger files.
    """

    limit: ClassVar[str]
    remedy: ClassVar[str]

    def parse(
        self, stream: BinaryIO, media_type: str | None = None, parser_context: dict[str, Any] | None = None
    ) -> Any:
        assert parser_context is not None
        max_bytes = getattr(settings, self.limit)
        length = parser_context["request"].META.get("CONTENT_LENGTH") or "0"
        if length.isdecimal() and int(length) > max_bytes + FORM_BYTES:
            raise self.build_error()
        parsed = super().parse(stream, media_type, parser_context)
        if sum(file.size or 0 for _, files in parsed.files.lists() for file in files) > max_bytes:
            raise self.build_error()
        return parsed

    def build_error(self) -> TooLargeError:
        max_bytes = getattr(settings, self.limit)
        return TooLargeError(f"The file has more than {max_bytes:,} bytes ({self.limit}). {self.remedy}", field="file")


class DatasetParser(UploadParser):
    limit = "BENCHMARK_DATASET_MAX_UPLOAD_BYTES"
    remedy = "Import larger files with manage.py import_dataset."


class CorpusParser(UploadParser):
    limit = "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
    remedy = "Import larger files with manage.py import_collection."


class RunParser(UploadParser):
    limit = "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
    remedy = "Import larger files with manage.py import_run."


class OnlyJSON(BaseContentNegotiation):
    """Content negotiation that always answers JSON, regardless of `Accept`, so that an error can be read."""

    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser | None:
        media_type = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(self, request: Any, renderers: Any, format_suffix: object = None) -> tuple[object, str]:
        return renderers[0], renderers[0].media_type
