from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "apps.operations"
    verbose_name = "Operations"

    def ready(self) -> None:
        from apps.operations import checks  # noqa: F401  (registers the system checks)
