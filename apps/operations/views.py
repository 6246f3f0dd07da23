"""Views for monitoring a site: /healthz, /readyz, /metrics."""

from hmac import compare_digest

import django_rq
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from redis.exceptions import RedisError

from apps.operations.metrics import build_registry
from benchbench.database.probing import Probe

PROBE = Probe()


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
    database, tables = PROBE.ask()
    usable = {"database": database, "tables": tables, "redis": _is_redis_usable()}
    statuses = {name: "ok" if is_usable else "unavailable" for name, is_usable in usable.items()}
    return JsonResponse(statuses, status=200 if all(usable.values()) else 503)


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


def _is_redis_usable() -> bool:
    try:
        return bool(django_rq.get_connection("default").ping())
    except RedisError:
        return False
