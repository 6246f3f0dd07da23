from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    verbose_name = "Retrieval"

    def ready(self) -> None:
        from apps.retrieval import checks  # noqa: F401  (registers them)
