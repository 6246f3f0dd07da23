from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    verbose_name = "Retrieval"
