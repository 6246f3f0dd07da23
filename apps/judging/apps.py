from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "apps.judging"
    default_auto_field = "django.db.models.BigAutoField"
