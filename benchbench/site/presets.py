"""Settings that are the same on every site: templates, REST framework, OpenAPI, content security policy, admin."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

from benchbench import SOFTWARE, __version__

TEMPLATES: list[dict[str, object]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).resolve().parents[2] / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["benchbench.site.escaping"],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"  # the templates of fields escape as those of pages do
REST_FRAMEWORK: dict[str, object] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.api.access.BearerAuthentication",  # first, so that unknown clients get a 401
        "rest_framework.authentication.SessionAuthentication",
        "apps.api.access.NoAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "apps.api.access.IsStaff",
        "apps.api.access.InScope",
        "apps.api.access.MayAct",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["apps.api.access.Throttle"],
    "DEFAULT_PARSER_CLASSES": ["apps.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.api.parsers.OnlyJSON",
    "DEFAULT_SCHEMA_CLASS": "apps.api.openapi.Schema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "apps.api.errors.present",
}
API_TAGS = {  # in the order in which a newcomer needs them
    "auth": "Sign in with name and password; programs use a personal token instead.",
    "collections": "Documents to search: create a collection, add documents, read them, list and make its indexes.",
    "indexes": "Indexes of a collection: which encoders, strategies and stores there are; build, follow, delete.",
    "benchmark-datasets": "Judged queries: upload or edit them, freeze versions, map their documents to a collection; "
    "baselines, and runs made elsewhere.",
    "benchmarks": "Choose configurations, preview, start, follow and repeat a benchmark; read its results.",
    "runs": "One configuration of a benchmark: its losses by stage, sections, slices and how many hits are judged.",
    "comparison": "Differences between runs, with their certainty, over all queries and query by query.",
    "gates": "Rules that a run must pass, for pipelines: passed, failed or cannot be decided, with the reason.",
    "judging-rounds": "Unjudged results graded by people and models; closing makes the dataset's next version.",
    "schedules": "Repeat a benchmark at the times of a cron expression, judge its gate, send a notice.",
    "operations": "Long work that other requests started: its progress and outcome; cancel it.",
    "exports": "Results and datasets as files, and which formats there are.",
}
SPECTACULAR_SETTINGS: dict[str, object] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "BenchBench",
    "VERSION": "2",
    "EXTENSIONS_INFO": {"x-software": SOFTWARE},
    "DESCRIPTION": "Everything that staff can do in the admin, for programs. See docs/api.md.",
    "TAGS": [{"name": name, "description": description} for name, description in API_TAGS.items()],
    "SCHEMA_PATH_PREFIX": "/api/v2",
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},
    "AUTHENTICATION_WHITELIST": [
        "apps.api.access.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "apps.records.models.Run.Status",
        "OutcomeEnum": "apps.api.resources.gates.OUTCOMES",
        "RunFormatEnum": "benchbench.files.runs.FORMATS",
        "UnresolvedOutcomeEnum": "apps.api.resources.mappings.LOST",
        "CollectionKindEnum": "apps.collections.models.Collection.Kind",
        "IndexStatusEnum": "apps.retrieval.models.Index.Status",
        "GradeKindEnum": "apps.api.resources.items.KINDS",
        "OperationKindEnum": "apps.api.resources.operations.KINDS",
        "StatusEnum": "apps.operations.models.Status",
    },
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["apps.api.access.IsStaff"],
    # From the wheel of drf-spectacular-sidecar, not from another site.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {
        **{"deepLinking": True, "persistAuthorization": False, "validatorUrl": None},
        **{"docExpansion": "none", "defaultModelsExpandDepth": 0},  # else it is 13,000 pixels high
    },
}


CONTENT_SECURITY_POLICY: dict[str, object] = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # The shell states its colours in the page, and Plotly places by attributes.
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# For django-rq's pages, which have inline scripts. Only superusers see them.
QUEUES: dict[str, object] = {"script-src": [UNSAFE_INLINE]}
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "benchbench.site.downloads.NamelessFileUploadHandler",
]


SINGLE_SIGN_ON_APPS = [
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]


def build_provider(issuer: str, client_id: str, secret: str) -> tuple[str, dict[str, object]]:
    """Return the id and allauth's settings of an OpenID Connect provider; the id changes with the issuer.

    Accounts are linked to the id and the provider's subject, so that subjects of two issuers never meet.
    """
    url = urlsplit(issuer)
    if not url.hostname or (url.scheme != "https" and url.hostname not in ("localhost", "127.0.0.1")):
        raise ImproperlyConfigured(f"BENCHBENCH_OIDC_ISSUER must begin with https://, not be {issuer!r}.")
    if not (client_id and secret):
        raise ImproperlyConfigured(
            "BENCHBENCH_OIDC_ISSUER needs BENCHBENCH_OIDC_CLIENT_ID and BENCHBENCH_OIDC_CLIENT_SECRET: register this "
            "site with the provider, and set both."
        )
    key = sha256(issuer.encode()).hexdigest()[:16]
    options = {"server_url": issuer, "oauth_pkce_enabled": True}
    app = {"provider_id": key, "name": "OpenID Connect", "client_id": client_id, "secret": secret, "settings": options}
    return key, {"APPS": [app]}


def sidebar_item(title: str, icon: str, model: str) -> dict[str, object]:
    """Return the link to the list of `model` ("collections.document"), shown to those who may view it."""
    app, name = model.split(".")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{name}_changelist"),
        "permission": may_view(f"{app}.view_{name}"),
    }


def only_at(*names: str) -> Callable[[HttpRequest], bool]:
    """Return whether a page is below the first address, without the pages of other items whose addresses lie below."""
    lists = [reverse_lazy(f"admin:{name}") for name in names]

    def is_active(request: HttpRequest) -> bool:
        below, *elsewhere = (request.path.startswith(str(address)) for address in lists)
        return below and not any(elsewhere)

    return is_active


def may_view(permission: str) -> Callable[[HttpRequest], bool]:
    return lambda request: request.user.has_perm(permission)


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def is_staff(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


UNFOLD: dict[str, object] = {
    "LOGIN": {"form": "apps.accounts.views.SignInForm"},
    "SITE_TITLE": "BenchBench",
    "SITE_HEADER": "BenchBench",
    "SITE_SUBHEADER": f"Measure your search · {__version__}",
    "SITE_SYMBOL": "query_stats",
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "apps.results.views.results.dashboard",
    "STYLES": [lambda request: static("benchbench/benchbench.css")],
    "SCRIPTS": [lambda request: static("benchbench/shell.js"), lambda request: static("benchbench/names.js")],
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("benchbench/favicon.svg")}
    ],
    "BORDER_RADIUS": "6px",
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.604)",
            "100": "oklch(93.2% .032 255.585)",
            "200": "oklch(88.2% .059 254.128)",
            "300": "oklch(80.9% .105 251.813)",
            "400": "oklch(70.7% .165 254.624)",
            "500": "oklch(62.3% .214 259.815)",
            "600": "oklch(54.6% .215 262.881)",
            "700": "oklch(48.8% .203 264.376)",
            "800": "oklch(42.4% .179 265.638)",
            "900": "oklch(37.9% .136 265.522)",
            "950": "oklch(28.2% .091 267.935)",
        },
    },
    # The palette finds rows of these models, by name and text; each with its icon.
    "COMMAND": {
        "search_models": {
            "benchmarks.benchmark": "leaderboard",
            "benchmarks.run": "directions_run",
            "datasets.dataset": "fact_check",
            "datasets.query": "help_center",
            "collections.collection": "library_books",
            "collections.document": "description",
            "retrieval.index": "manage_search",
            "mappings.mapping": "join_inner",
            "judging.round": "edit_note",
        }
    },
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": [
            {"items": [{"title": "Start", "icon": "home", "link": reverse_lazy("admin:index")}]},
            {
                "title": "Documents",
                "items": [
                    sidebar_item("Collections", "library_books", "collections.collection"),
                    sidebar_item("Documents", "description", "collections.document"),
                    sidebar_item("Indexes", "manage_search", "retrieval.index"),
                ],
            },
            {
                "title": "Queries",
                "items": [
                    sidebar_item("Datasets", "fact_check", "datasets.dataset"),
                    sidebar_item("Queries", "help_center", "datasets.query"),
                    sidebar_item("Judgments", "gavel", "datasets.judgment"),
                    sidebar_item("Mappings", "join_inner", "mappings.mapping"),
                ],
            },
            {
                "title": "Benchmarks",
                "items": [
                    sidebar_item("Benchmarks", "leaderboard", "benchmarks.benchmark"),
                    sidebar_item("Runs", "directions_run", "benchmarks.run"),
                    sidebar_item("Baselines", "keep", "benchmarks.baseline"),
                    sidebar_item("Schedules", "event_repeat", "benchmarks.schedule"),
                ],
            },
            {
                "title": "Judging",
                "items": [
                    sidebar_item("Rounds", "edit_note", "judging.round")
                    | {"active": only_at("judging_round_changelist", "my_grades")},
                    sidebar_item("My grades", "checklist", "judging.round")
                    | {"link": reverse_lazy("admin:my_grades"), "permission": may_view("judging.add_grade")},
                ],
            },
            {
                "title": "System",
                "collapsible": True,
                "items": [
                    sidebar_item("Operations", "settings_b_roll", "operations.operation")
                    | {"active": only_at("operations_operation_changelist", "workers", "engines", "disk")},
                    sidebar_item("Workers", "engineering", "operations.operation")
                    | {"link": reverse_lazy("admin:workers")},
                    sidebar_item("Engines", "travel_explore", "operations.operation")
                    | {"link": reverse_lazy("admin:engines")},
                    sidebar_item("Disk", "database", "operations.operation") | {"link": reverse_lazy("admin:disk")},
                    sidebar_item("Bin", "delete", "accounts.deletion") | {"permission": is_staff},
                    sidebar_item("Tokens", "key", "accounts.accesstoken") | {"permission": is_staff},
                    {"title": "API", "icon": "code", "link": reverse_lazy("api_docs"), "permission": is_staff},
                    sidebar_item("Users", "person", "auth.user"),
                    sidebar_item("Groups", "group", "auth.group"),
                    sidebar_item("Log", "history", "admin.logentry") | {"permission": is_superuser},
                ],
            },
        ],
    },
}
