"""Readers of environment variables for the settings. Each raises an error with a sentence for an invalid value."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

SECRETS = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")


def read_secrets() -> None:
    """Set each secret that is not in the environment from the file that NAME_FILE names, as in containers."""
    for name in SECRETS:
        file = os.environ.get(f"{name}_FILE", "")
        if file and not os.environ.get(name):
            try:
                os.environ[name] = Path(file).read_text(encoding="utf-8").strip()
            except OSError as error:
                reason = f"{name}_FILE: {file} cannot be read: {error.strerror or error}."
                raise ImproperlyConfigured(f"{reason} Mount the file, or set {name}.") from None


def env_str(name: str, default: str) -> str:
    return os.environ.get(name, "") or default


def list_stated(names: Sequence[str]) -> list[str]:
    """Return the variables among `names` that were set for this process."""
    return [name for name in names if os.environ.get(name)]


def env_bool(name: str) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "true", "1", "yes", "false", "0", "no"):
        return value in ("true", "1", "yes")
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def env_int(name: str, default: int, *, minimum: int = 1) -> int:
    value = os.environ.get(name, "").strip()
    try:
        number = int(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if number < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {number}.")
    return number


def env_list(name: str, default: list[str]) -> list[str]:
    value = os.environ.get(name, "")
    return [item.strip() for item in value.split(",") if item.strip()] if value else default


def env_choice(name: str, default: str, choices: Sequence[str]) -> str:
    value = env_str(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def env_rate(name: str, default: str) -> tuple[int, int]:
    """Return a rate such as 600/min as (requests, seconds)."""
    value = env_str(name, default)
    seconds = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
    match = re.fullmatch(r"([1-9][0-9]{0,8})/(s|min|h|d)", value)
    if match is None:
        raise ImproperlyConfigured(
            f"{name} must be a number and a unit (s, min, h, d), such as 600/min, not {value!r}."
        )
    return int(match[1]), seconds[match[2]]
