"""The app, and its system check for the files of the default model."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from apps.operations.checks import is_checked_command
from apps.retrieval.encoders.model_files import find_model


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    verbose_name = "Retrieval"

    def ready(self) -> None:
        from apps.operations.handlers import register_handler
        from apps.retrieval.tasks import IndexHandler

        register(check_default_model)
        register_handler(IndexHandler())


def check_default_model(**kwargs: Any) -> list[CheckMessage]:
    """Warn if the default model is not on this machine. Only looks for its files."""
    name = settings.BENCHBENCH_DEFAULT_MODEL
    if not is_checked_command() or find_model(name):
        return []
    return [
        Warning(
            f"The default model {name!r} is not on this machine: the first index that needs it will download it.",
            hint="Download it now with `hf download`, or set BENCHBENCH_DEFAULT_MODEL to the path of a model's folder.",
            id="benchbench.W002",
        )
    ]
