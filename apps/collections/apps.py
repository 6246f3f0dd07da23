from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    verbose_name = "Collections"
