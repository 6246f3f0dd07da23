from django.apps import AppConfig


class MappingsConfig(AppConfig):
    name = "apps.mappings"

    def ready(self) -> None:
        from apps.mappings.tasks import ResolveHandler
        from apps.operations.handlers import register_handler

        register_handler(ResolveHandler())
