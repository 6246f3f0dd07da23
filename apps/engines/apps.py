"""The app, and its system check for the file of engines."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning, register


class EnginesConfig(AppConfig):
    name = "apps.engines"
    verbose_name = "Engines"

    def ready(self) -> None:
        from stamina.instrumentation import set_on_retry_hooks

        set_on_retry_hooks([])  # retries are counted and stored, not logged
        register(check_declarations)


def check_declarations(**kwargs: Any) -> list[CheckMessage]:
    """Check the file BENCHBENCH_ENGINES and the environment variables of its secrets."""
    from apps.engines.declarations import load_declarations
    from benchbench.errors import BenchbenchError

    try:
        declarations = load_declarations()
    except BenchbenchError as error:
        return [Warning(error.message, hint="Correct the file that BENCHBENCH_ENGINES names.", id="benchbench.W004")]
    messages: list[CheckMessage] = [Warning(text, id="benchbench.W004") for text in declarations.refused.values()]
    for address in (*declarations.engines.values(), *declarations.notices.values()):
        try:
            address.read_secret()
        except BenchbenchError as error:
            messages.append(Warning(error.message, id="benchbench.W003"))
    return messages
