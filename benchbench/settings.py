"""Settings, read from the environment. Every variable is described in .env.example."""

import contextlib
import os
import sys
import tempfile
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from benchbench import embedded
from benchbench.environment import env_bool, env_choice, env_int, env_list, env_rate, env_str, read_secrets
from benchbench.logs import build_logging
from benchbench.site.presets import (  # noqa: F401  (settings as they are)
    CONTENT_SECURITY_POLICY,
    FILE_UPLOAD_HANDLERS,
    FORM_RENDERER,
    SINGLE_SIGN_ON_APPS,
    SPECTACULAR_SETTINGS,
    TEMPLATES,
    UNFOLD,
    build_provider,
)
from benchbench.site.presets import REST_FRAMEWORK as REST

BASE_DIR = Path(__file__).resolve().parent.parent
read_secrets()


def find_package(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ImproperlyConfigured(f"The package {name} is not installed: run `make install`.")
    return Path(spec.origin).parent


DATA_DIR = embedded.find_places().data


def load_secret() -> str:
    """Return the secret key of an evaluation site, made at its first start and stored in its data folder."""
    file = DATA_DIR / "secret_key"
    if not file.exists():
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        fresh = DATA_DIR / f"secret_key.{os.getpid()}"
        fresh.touch(mode=0o600)
        fresh.write_text(get_random_secret_key(), encoding="ascii")
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)  # atomic: of two processes that start at once, one key wins
        fresh.unlink()
    return file.read_text(encoding="ascii")


DEBUG = env_bool("DEBUG")
EMBEDDED = not os.environ.get("DATABASE_URL")
SECRET_KEY = os.environ.get("SECRET_KEY", "")
if not SECRET_KEY:
    if not EMBEDDED:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set: a site with its own DATABASE_URL needs one. See .env.example."
        )
    SECRET_KEY = load_secret()
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", [])
HTTPS = env_bool("HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = ["^(healthz|readyz)$"]  # requested inside the network, by plain HTTP
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SILENCED_SYSTEM_CHECKS = ["security.W021"]  # HSTS preloading is up to the owner of the whole domain
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
CSRF_FAILURE_VIEW = "benchbench.site.error_pages.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

INSTALLED_APPS = [
    *(["daphne"] if "runserver" in sys.argv else []),  # to import it is a tenth of the start of a command
    "benchbench.site.shell.ShellConfig",
    "django.contrib.admin",
    "django.forms",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "channels",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "django_rq",
    "apps.operations",
    "apps.collections",
    "apps.retrieval",
    "apps.engines",
    "apps.datasets",
    "apps.mappings",
    "apps.records",
    "apps.execution",
    "apps.verdicts",
    "apps.experiments",
    "apps.judging",
    "apps.benchmarks",
    "apps.results",
    "apps.accounts",
    "apps.api",
    "apps.demo",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "benchbench.site.addresses.refuse_nul",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "benchbench.urls"
ASGI_APPLICATION = "benchbench.asgi.application"
AUTHENTICATION_BACKENDS = ["benchbench.access.PermissionsAtOnce"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
# Single sign-on by OpenID Connect. Without an issuer no part of it is installed.
BENCHBENCH_OIDC_ISSUER = env_str("BENCHBENCH_OIDC_ISSUER", "").rstrip("/")
BENCHBENCH_OIDC_NAME = env_str("BENCHBENCH_OIDC_NAME", "single sign-on")
BENCHBENCH_OIDC_DOMAINS = [domain.lower().lstrip("@") for domain in env_list("BENCHBENCH_OIDC_DOMAINS", [])]
BENCHBENCH_OIDC_GROUPS = env_list("BENCHBENCH_OIDC_GROUPS", [])
BENCHBENCH_OIDC_GROUPS_CLAIM = env_str("BENCHBENCH_OIDC_GROUPS_CLAIM", "groups")
BENCHBENCH_OIDC_ROLE = env_choice("BENCHBENCH_OIDC_ROLE", "viewer", ("viewer", "judge", "editor"))
BENCHBENCH_OIDC_TRUST_EMAIL = env_bool("BENCHBENCH_OIDC_TRUST_EMAIL")
if BENCHBENCH_OIDC_ISSUER:
    BENCHBENCH_OIDC_ID, provider = build_provider(
        BENCHBENCH_OIDC_ISSUER,
        env_str("BENCHBENCH_OIDC_CLIENT_ID", ""),
        env_str("BENCHBENCH_OIDC_CLIENT_SECRET", ""),
    )
    SOCIALACCOUNT_PROVIDERS = {"openid_connect": provider}
    SOCIALACCOUNT_ADAPTER = "apps.accounts.openid.SiteAdapter"
    first = INSTALLED_APPS.index("apps.operations")
    INSTALLED_APPS[first:first] = SINGLE_SIGN_ON_APPS
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
LANGUAGE_CODE = "en-us"
TIME_ZONE = env_str("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = False  # English only
FORMAT_MODULE_PATH = "benchbench.site.formats"  # ISO dates
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# PostgreSQL and Redis: the embedded ones unless a URL names another.
DATABASE_URL = env_str("DATABASE_URL", embedded.find_places().database_url())
REDIS_URL = env_str("REDIS_URL", embedded.find_places().redis_url())
ENGINE = "benchbench.embedded" if EMBEDDED else None
DATABASES = {"default": dj_database_url.parse(DATABASE_URL, engine=ENGINE, conn_max_age=0)}
if DATABASE_POOL := env_int("DATABASE_POOL", 0, minimum=0):  # the most connections that this process keeps
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    pool = {"min_size": 1, "max_size": DATABASE_POOL, "timeout": 5, "max_idle": 60}
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = pool
CACHES: dict[str, object] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "benchbench",
    }
}
CHANNEL_LAYERS: dict[str, object] = {
    # A watcher that falls behind loses its newest messages past the capacity; events are hints, so that costs nothing.
    # The layer waits five seconds at a time for a message. With redis-py 8's default timeout of the same length, every
    # socket without events would be closed.
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 30}], "capacity": 500},
    }
}
RQ_SHOW_ADMIN_LINK = False  # its second set of pages, for all staff; benchbench.urls has the pages for superusers
# As JSON: to read a pickled job is to run what it says.
QUEUE = {"URL": REDIS_URL, "DEFAULT_TIMEOUT": 600, "SERIALIZER": "rq.serializers.JSONSerializer"}
RQ_QUEUES = dict.fromkeys(("default", "gpu", "quick", "schedules", "notices"), QUEUE)
RQ = {"JOB_CLASS": "apps.operations.workers.jobs.OwnJob"}

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static", ("plotly", find_package("plotly") / "package_data")]
WHITENOISE_USE_FINDERS = True
FILE_UPLOAD_MAX_MEMORY_SIZE = 2**21
REST_FRAMEWORK = {**REST, "NUM_PROXIES": env_int("BENCHBENCH_PROXIES", 0, minimum=0)}
SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": timedelta(minutes=env_int("BENCHBENCH_JWT_ACCESS_MINUTES", 15)),
    "REFRESH_TOKEN_LIFETIME": timedelta(days=env_int("BENCHBENCH_JWT_REFRESH_DAYS", 7)),
    "AUTH_HEADER_TYPES": ("Bearer", "bearer"),  # HTTP has schemes in either case
    "CHECK_REVOKE_TOKEN": True,  # a new password ends the tokens of the old one
}
# Requests in a second, minute, hour or day, by what they do: of one user; the last three of an address, name, address.
BENCHBENCH_API_RATES = {
    "read": env_rate("BENCHBENCH_API_RATE_READ", "600/min"),
    "write": env_rate("BENCHBENCH_API_RATE_WRITE", "120/min"),
    "start": env_rate("BENCHBENCH_API_RATE_START", "30/min"),
    "upload": env_rate("BENCHBENCH_API_RATE_UPLOAD", "30/min"),
    "auth": env_rate("BENCHBENCH_API_RATE_AUTH", "10/min"),
    "name": env_rate("BENCHBENCH_API_RATE_NAME", "30/h"),
    "failed": env_rate("BENCHBENCH_API_RATE_FAILED", "60/min"),
}
BENCHBENCH_IDEMPOTENCY_HOURS = env_int("BENCHBENCH_IDEMPOTENCY_HOURS", 24)
# Development only: everybody is this user, who must exist and be staff.
DISABLE_AUTH = env_bool("DISABLE_AUTH")
DISABLE_AUTH_USER = env_str("DISABLE_AUTH_USER", "developer")
if DISABLE_AUTH and not DEBUG:
    raise ImproperlyConfigured("DISABLE_AUTH is true without DEBUG, so anyone can use the API as staff: unset it.")
LOGGING = build_logging(env_str("LOG_FORMAT", "line"), env_str("LOG_LEVEL", "WARNING"))

# Quotas of the JSON upload.
BENCHMARK_DATASET_MAX_UPLOAD_BYTES = env_int("BENCHMARK_DATASET_MAX_UPLOAD_BYTES", 10 * 2**20)
BENCHMARK_DATASET_MAX_QUERIES = env_int("BENCHMARK_DATASET_MAX_QUERIES", 1000)
BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY = env_int("BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY", 100)
# The most bytes an uploaded dataset may unpack to, and its most lines (not JSON). JSON takes twelve times its bytes.
BENCHMARK_DATASET_MAX_UNPACKED_BYTES = env_int("BENCHMARK_DATASET_MAX_UNPACKED_BYTES", 40 * 2**20)
BENCHMARK_DATASET_MAX_ROWS = env_int("BENCHMARK_DATASET_MAX_ROWS", 500_000)
BENCHBENCH_READING_SECONDS = env_int("BENCHBENCH_READING_SECONDS", 60)
# The largest corpus or zip that may be uploaded, and the most bytes it may unpack to; commands have no limit.
BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES = env_int("BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES", 200 * 2**20)
# The most chunks and summaries of an index; indexes of whole documents have no limit.
BENCHBENCH_MAX_CHUNKS = env_int("BENCHBENCH_MAX_CHUNKS", 2_000_000)
# A resolution that is larger than this, or takes longer, goes to the queue.
BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = env_int("BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS", 10_000, minimum=0)
BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS = env_int("BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS", 50_000, minimum=0)
BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS = env_int("BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_WALL_MS", 3000, minimum=0)
# The size of a matrix.
BENCHMARK_MAX_RUNS = env_int("BENCHMARK_MAX_RUNS", 200)
BENCHMARK_MAX_VALUES_PER_AXIS = env_int("BENCHMARK_MAX_VALUES_PER_AXIS", 30)
# The most operations of one user that have not ended.
BENCHMARK_MAX_RUNNING_PER_USER = env_int("BENCHMARK_MAX_RUNNING_PER_USER", 10)
BENCHMARK_MAX_INDEXING_PER_USER = env_int("BENCHMARK_MAX_INDEXING_PER_USER", 10)
BENCHMARK_MAX_RESOLVING_PER_USER = env_int("BENCHMARK_MAX_RESOLVING_PER_USER", 10)
BENCHMARK_MAX_LLM_JUDGING_PER_USER = env_int("BENCHMARK_MAX_LLM_JUDGING_PER_USER", 10)
BENCHMARK_MAX_MEASURING_PER_USER = env_int("BENCHMARK_MAX_MEASURING_PER_USER", 10)
# With more rankings than this, over all runs and queries, re-scoring goes to the queue.
BENCHBENCH_MEASURE_AT_ONCE = env_int("BENCHBENCH_MEASURE_AT_ONCE", 50_000, minimum=0)
BENCHBENCH_QUERY_TIMEOUT_MS = env_int("BENCHBENCH_QUERY_TIMEOUT_MS", 60_000)
BENCHBENCH_RESIDENT_BYTES = env_int("BENCHBENCH_RESIDENT_BYTES", 2 * 2**30, minimum=2**20)
BENCHBENCH_ANN_BUILD_BYTES = env_int("BENCHBENCH_ANN_BUILD_BYTES", 768 * 2**20, minimum=2**20)
BENCHBENCH_BATCH_SECONDS = env_int("BENCHBENCH_BATCH_SECONDS", 5, minimum=0)
BENCHBENCH_QUICK_PROCESSES = env_int("BENCHBENCH_QUICK_PROCESSES", 1, minimum=0)
BENCHBENCH_LOAD_THREADS = env_int("BENCHBENCH_LOAD_THREADS", 8)
BENCHBENCH_LEASE_SECONDS = env_int("BENCHBENCH_LEASE_SECONDS", 30, minimum=3)
BENCHBENCH_SWEEP_SECONDS = env_int("BENCHBENCH_SWEEP_SECONDS", 15)
BENCHBENCH_BATCH_TIMEOUT_SECONDS = env_int("BENCHBENCH_BATCH_TIMEOUT_SECONDS", 3600)
BENCHBENCH_CALL_TIMEOUT_SECONDS = env_int("BENCHBENCH_CALL_TIMEOUT_SECONDS", 300)
BENCHBENCH_LOCK_SECONDS = env_int("BENCHBENCH_LOCK_SECONDS", 60)
BENCHBENCH_IDLE_TRANSACTION_SECONDS = env_int("BENCHBENCH_IDLE_TRANSACTION_SECONDS", 60)
BENCHBENCH_MAX_ATTEMPTS = env_int("BENCHBENCH_MAX_ATTEMPTS", 3)
BENCHBENCH_STRAGGLER_FACTOR = env_int("BENCHBENCH_STRAGGLER_FACTOR", 3, minimum=0)
BENCHBENCH_EVENT_INTERVAL_MS = env_int("BENCHBENCH_EVENT_INTERVAL_MS", 500, minimum=0)
BENCHBENCH_METRICS_TOKEN = env_str("BENCHBENCH_METRICS_TOKEN", "")
# Sockets that watch operations: the most open ones of a user and of a process, and limits on a client's messages.
BENCHBENCH_SOCKETS_PER_USER = env_int("BENCHBENCH_SOCKETS_PER_USER", 20)
BENCHBENCH_SOCKETS_PER_PROCESS = env_int("BENCHBENCH_SOCKETS_PER_PROCESS", 1000)
BENCHBENCH_SOCKET_MAX_BYTES = env_int("BENCHBENCH_SOCKET_MAX_BYTES", 4096)
BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE = env_int("BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE", 60)
BENCHBENCH_LOCK_DIR = Path(env_str("BENCHBENCH_LOCK_DIR", tempfile.gettempdir()))
BENCHBENCH_VECTOR_DIR = Path(env_str("BENCHBENCH_VECTOR_DIR", str(DATA_DIR / "vectors")))
BENCHBENCH_VECTOR_CACHE_BYTES = env_int("BENCHBENCH_VECTOR_CACHE_BYTES", 2**30, minimum=0)
BENCHBENCH_TOKEN_BYTES = env_int("BENCHBENCH_TOKEN_BYTES", 4 * 2**30, minimum=0)
# Servers of language models, NAME=KIND+URL separated by commas, and the keys of those that need one, NAME=KEY.
BENCHBENCH_LLM_SERVERS = env_list("BENCHBENCH_LLM_SERVERS", [])
BENCHBENCH_LLM_KEYS = env_list("BENCHBENCH_LLM_KEYS", [])
BENCHBENCH_LLM_TIMEOUT_SECONDS = env_int("BENCHBENCH_LLM_TIMEOUT_SECONDS", 60)
# For single servers: NAME=SECONDS, and NAME=TOKENS of the context that Ollama should give its models.
BENCHBENCH_LLM_TIMEOUTS = env_list("BENCHBENCH_LLM_TIMEOUTS", [])
BENCHBENCH_LLM_CONTEXTS = env_list("BENCHBENCH_LLM_CONTEXTS", [])
BENCHBENCH_LLM_CACHE_BYTES = env_int("BENCHBENCH_LLM_CACHE_BYTES", 2**28, minimum=0)
# A YAML file that declares search engines and notices (docs/engines.md), and the most bytes of answers to store.
BENCHBENCH_ENGINES = env_str("BENCHBENCH_ENGINES", "")
BENCHBENCH_ENGINE_CACHE_BYTES = env_int("BENCHBENCH_ENGINE_CACHE_BYTES", 2**28, minimum=0)
# Days in which a deletion can be taken back, and the most bytes of one; 0 days: never.
BENCHBENCH_KEEP_DELETED_DAYS = env_int("BENCHBENCH_KEEP_DELETED_DAYS", 14, minimum=0)
BENCHBENCH_KEEP_DELETED_BYTES = env_int("BENCHBENCH_KEEP_DELETED_BYTES", 2**31, minimum=0)
# Days after which to delete what nothing needs (docs/scale.md); 0 keeps it for ever.
BENCHBENCH_KEEP_RANKINGS_DAYS = env_int("BENCHBENCH_KEEP_RANKINGS_DAYS", 0, minimum=0)
BENCHBENCH_KEEP_INDEXES_DAYS = env_int("BENCHBENCH_KEEP_INDEXES_DAYS", 0, minimum=0)
BENCHBENCH_KEEP_CACHES_DAYS = env_int("BENCHBENCH_KEEP_CACHES_DAYS", 0, minimum=0)
BENCHBENCH_KEEP_OPERATIONS_DAYS = env_int("BENCHBENCH_KEEP_OPERATIONS_DAYS", 0, minimum=0)
BENCHBENCH_DEFAULT_MODEL = env_str("BENCHBENCH_DEFAULT_MODEL", "sentence-transformers/all-MiniLM-L6-v2")
