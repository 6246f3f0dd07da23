"""Converters of parts of addresses, beside those of Django."""

from django.urls import register_converter
from django.urls.converters import UUIDConverter


class IdConverter(UUIDConverter):
    """A UUID in upper or lower case, as RFC 9562 has programs read them; answers write it in lower case."""

    regex = f"(?i:{UUIDConverter.regex})"


register_converter(IdConverter, "id")
