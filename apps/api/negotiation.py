"""The choice of a parser for a request. Answers are JSON."""

from typing import Any

from rest_framework.negotiation import BaseContentNegotiation


class OnlyJSON(BaseContentNegotiation):
    """Answers JSON whatever the client says it accepts: there is nothing else, and an error must be readable."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        media_type = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> tuple[Any, str]:
        return renderers[0], renderers[0].media_type
