from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    verbose_name = "Datasets"
