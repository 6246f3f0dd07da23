"""Views for monitoring a site: /healthz, /readyz, /metrics."""

from collections.abc import Callable
from hmac import compare_digest

import django_rq
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.utils import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from redis.exceptions import RedisError

from apps.operations.metrics import build_registry
from benchbench.database.tables import count_unapplied


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Respond that this process is running, without checking services."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Respond with the state of PostgreSQL, its tables and Redis: 200 if all are usable, 503 otherwise.

    The view is public, so it shows no addresses or errors. `manage.py check` shows them.
    """
    checks: dict[str, Callable[[], object]] = {
        "database": lambda: connection.cursor().execute("SELECT 1") is not None,
        "tables": lambda: not count_unapplied(),
        "redis": lambda: django_rq.get_connection("default").ping(),
    }
    statuses = {name: "ok" if _is_usable(check) else "unavailable" for name, check in checks.items()}
    return JsonResponse(statuses, status=200 if set(statuses.values()) == {"ok"} else 503)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Respond with the metrics, to superusers and bearers of BENCHBENCH_METRICS_TOKEN. 503 without Redis."""
    if not (_has_token(request) or (request.user.is_active and request.user.is_superuser)):
        raise PermissionDenied("Log in as a superuser, or send BENCHBENCH_METRICS_TOKEN as a bearer token.")
    try:
        return HttpResponse(generate_latest(build_registry()), content_type=CONTENT_TYPE_LATEST)
    except RedisError:
        return HttpResponse("Redis does not answer: start it, or correct REDIS_URL.\n", "text/plain", status=503)


def _has_token(request: HttpRequest) -> bool:
    token: str = settings.BENCHBENCH_METRICS_TOKEN
    header = request.headers.get("Authorization", "")
    return bool(token) and compare_digest(header.encode(), f"Bearer {token}".encode())


def _is_usable(check: Callable[[], object]) -> bool:
    try:
        return bool(check())
    except (DatabaseError, RedisError):
        return False
