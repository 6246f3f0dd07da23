"""Management commands as a user would type them."""

import io
import json
from typing import Any

from django.core.management import call_command


def output_of(name: str, *arguments: object, **options: Any) -> str:
    """Run a command, and return what it prints."""
    out = io.StringIO()
    call_command(name, *map(str, arguments), stdout=out, **options)
    return out.getvalue()


def json_of(name: str, *arguments: object) -> Any:
    return json.loads(output_of(name, *arguments, "--json"))
