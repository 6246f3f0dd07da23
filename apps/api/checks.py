"""System checks of the API."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register


@register
def check_authentication(**kwargs: Any) -> list[CheckMessage]:
    """Say at every start that everybody is let in."""
    if not settings.DISABLE_AUTH:
        return []
    hint = "Unset DISABLE_AUTH wherever others reach the site."
    told = f"DISABLE_AUTH is on: the API lets everybody in as {settings.DISABLE_AUTH_USER!r}."
    return [Warning(told, hint=hint, id="benchbench.W010")]
