from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "apps.api"
    verbose_name = "Api"

    def ready(self) -> None:
        from apps.api import checks  # noqa: F401 (registers them)
