import logging
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

logger = logging.getLogger(__name__)


class ApiConfig(AppConfig):
    name = "apps.api"
    verbose_name = "Api"

    def ready(self) -> None:
        if settings.DISABLE_AUTH:  # servers run no checks
            logger.warning("DISABLE_AUTH is on: the API lets everybody in as %r.", settings.DISABLE_AUTH_USER)


@register
def check_authentication(**kwargs: Any) -> list[CheckMessage]:
    """Warn at every start that DISABLE_AUTH grants access without authentication."""
    if not settings.DISABLE_AUTH:
        return []
    hint = "Unset DISABLE_AUTH wherever others reach the site."
    message = f"DISABLE_AUTH is on: the API lets everybody in as {settings.DISABLE_AUTH_USER!r}."
    return [Warning(message, hint=hint, id="benchbench.W010")]
