from django.apps import AppConfig


class RecordsConfig(AppConfig):
    name = "apps.records"
    label = "benchmarks"  # of the tables, permissions and addresses
