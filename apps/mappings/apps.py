from django.apps import AppConfig


class MappingsConfig(AppConfig):
    name = "apps.mappings"
    verbose_name = "Mappings"
