"""System checks: the services and settings that the site needs."""

import platform
import re
import sys
from typing import Any
from urllib.parse import urlsplit

import django_rq
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection
from django.db.utils import DatabaseError
from redis.exceptions import RedisError

from benchbench.database.tables import count_unapplied, describe_missing, describe_update
from benchbench.markup import MENDED_HTML, html_is_slow

EXTENSION = "vector"
SOUND = [0, 8, 4]  # the first version of pgvector with these two faults mended
VERSION = "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = %s"
# Commands that report or need the services. Others (migrate, makemigrations …) must run while something is missing.
CHECKED_COMMANDS = {"check", "runserver"}


def is_checked_command() -> bool:
    return len(sys.argv) > 1 and sys.argv[1] in CHECKED_COMMANDS


@register
def check_database(**kwargs: Any) -> list[CheckMessage]:
    """Check that PostgreSQL answers, has pgvector and up-to-date tables."""
    if not is_checked_command():
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(VERSION, [EXTENSION])
            (version,) = cursor.fetchone() or [""]
        missing = count_unapplied()
    except DatabaseError as error:
        host = connection.settings_dict.get("HOST") or connection.settings_dict.get("OPTIONS", {}).get("host", "")
        hint = "Start PostgreSQL, or correct DATABASE_URL. If it is unset, BenchBench starts its own."
        return [Error(f"PostgreSQL at {host!r} does not answer: {error}".strip(), hint=hint, id="benchbench.E001")]
    messages: list[CheckMessage] = []
    if not version:
        hint = "Install pgvector 0.8.4 or newer on the database server, or use the image of docker-compose.yml."
        messages.append(
            Error(f"The extension `{EXTENSION}` is not available in PostgreSQL.", hint=hint, id="benchbench.E002")
        )
    elif [int(number) for number in re.findall(r"\d+", version)] < SOUND:
        hint = "Install pgvector 0.8.4 or newer on the database server, then run ALTER EXTENSION vector UPDATE."
        problem = (
            f"pgvector {version} can damage HNSW indexes when PostgreSQL vacuums them (before 0.8.3), or fail to "
            "vacuum them (before 0.8.4)."
        )
        messages.append(Warning(problem, hint=hint, id="benchbench.W005"))
    if missing:
        hint = describe_update("benchbench")
        messages.append(Warning(f"{describe_missing(missing)}.", hint=hint, id="benchbench.W001"))
    return messages


@register(Tags.security, deploy=True)
def check_password_of_redis(**kwargs: Any) -> list[CheckMessage]:
    """Warn if Redis has no password: anyone who can write to it controls the job queue and the throttles."""
    url = urlsplit(settings.REDIS_URL)
    if url.scheme == "unix" or url.password:  # a Unix socket is protected by its folder's permissions
        return []
    hint = "Set one (requirepass), and add it to the URL: REDIS_URL=redis://:PASSWORD@HOST/0."
    return [Warning(f"Redis at {url.hostname!r} requires no password.", hint=hint, id="benchbench.W002")]


@register
def check_redis(**kwargs: Any) -> list[CheckMessage]:
    """Check that Redis answers. Without it no jobs are queued and pages do not update themselves."""
    if not is_checked_command():
        return []
    try:
        django_rq.get_connection("default").ping()
    except RedisError as error:
        hint = "Start Redis, or correct REDIS_URL. If it is unset, BenchBench starts its own."
        return [Error(f"Redis does not answer: {error}", hint=hint, id="benchbench.E003")]
    return []


@register
def check_python(**kwargs: Any) -> list[CheckMessage]:
    """Warn of a Python that a page of HTML in a collection can occupy until the limit of its reading."""
    if not (is_checked_command() and html_is_slow()):
        return []
    mended = [f"{major}.{minor}.{patch}" for (major, minor), patch in MENDED_HTML.items()]
    hint = f"Install Python {', '.join(mended[:-1])} or {mended[-1]}, or a later one, and make the environment again."
    problem = (
        f"The parser of HTML in Python {platform.python_version()} takes hours for some small files (CVE-2025-6069); "
        "their reading is ended after BENCHBENCH_READING_SECONDS."
    )
    return [Warning(problem, hint=hint, id="benchbench.W006")]
