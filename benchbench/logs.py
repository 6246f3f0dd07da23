"""Logs of all processes: lines for people or for programs, with the operation and batch that a worker processes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.core.exceptions import ImproperlyConfigured

_at_work: ContextVar[dict[str, object]] = ContextVar("at_work", default={})  # noqa: B039 (never changed in place)


@contextmanager
def at_work(**facts: object) -> Iterator[None]:
    """Add `facts` to every line that this thread logs in the block."""
    before = _at_work.set({**_at_work.get(), **facts})
    try:
        yield
    finally:
        _at_work.reset(before)


class WithOperation(logging.Filter):
    """Filter that adds `operation`, `batch` and `worker` to each record; empty outside a batch."""

    def filter(self, record: logging.LogRecord) -> bool:
        facts = _at_work.get()
        for name in ("operation", "batch", "worker"):
            setattr(record, name, facts.get(name, ""))
        return True


FORMATTERS: dict[str, dict[str, object]] = {
    "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
    "json": {
        "()": "pythonjsonlogger.json.JsonFormatter",
        "format": "{asctime}{levelname}{name}{message}{operation}{batch}{worker}",
        "style": "{",
        "rename_fields": {"asctime": "time", "levelname": "level", "name": "logger"},
    },
}


def build_logging(formatter: str, level: str) -> dict[str, object]:
    """Return the setting LOGGING: records from `level` upwards go to stderr, in the format of `formatter`."""
    if formatter not in FORMATTERS:
        raise ImproperlyConfigured(f"LOG_FORMAT must be one of {', '.join(FORMATTERS)}, not {formatter!r}.")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"operation": {"()": WithOperation}},
        "formatters": FORMATTERS,
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": formatter, "filters": ["operation"]}},
        "root": {"handlers": ["stderr"], "level": level},
    }
