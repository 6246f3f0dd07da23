import logging

from django.apps import AppConfig
from django.conf import settings

logger = logging.getLogger(__name__)


class ApiConfig(AppConfig):
    name = "apps.api"
    verbose_name = "Api"

    def ready(self) -> None:
        from apps.api import checks  # noqa: F401  (registers them)
        from apps.api.access import ending  # noqa: F401  (listens)

        if settings.DISABLE_AUTH:  # servers run no checks
            logger.warning("DISABLE_AUTH is on: the API lets everybody in as %r.", settings.DISABLE_AUTH_USER)
