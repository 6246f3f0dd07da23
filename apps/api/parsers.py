"""Bodies of requests."""

from typing import Any, BinaryIO

from django.conf import settings
from rest_framework.parsers import BaseParser

from benchbench import strict_json
from benchbench.errors import BenchbenchError


class TooLargeError(BenchbenchError):
    """The body is larger than a request may be."""

    code = "too_large"
    status = 413


class StrictJSONParser(BaseParser):
    """Reads JSON as everything here does: a key stands once, NaN is none, depth is an error and never a crash."""

    media_type = "application/json"

    def parse(
        self, stream: BinaryIO, media_type: str | None = None, parser_context: dict[str, Any] | None = None
    ) -> Any:
        """Raises TooLargeError past Django's limit, which holds for a body that Django reads itself, not for this."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        content = stream.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(f"The body has more than {limit:,} bytes, the most that a request may have.")
        return strict_json.parse(strict_json.decode(content, where="The body"), where="The body")
