"""Settings that no site changes: of REST framework, of the OpenAPI schema, of what browsers may load."""

from typing import Any

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.api.access.authentication.BearerAuthentication",  # first: it makes unknown clients' answer 401
        "rest_framework.authentication.SessionAuthentication",
        "apps.api.access.authentication.NoAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "apps.api.access.permissions.IsStaff",
        "apps.api.access.permissions.InScope",
        "apps.api.access.permissions.MayAct",
    ],
    "DEFAULT_THROTTLE_CLASSES": ["apps.api.access.throttling.Throttle"],
    "DEFAULT_PARSER_CLASSES": ["apps.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.api.parsers.OnlyJSON",
    "DEFAULT_SCHEMA_CLASS": "apps.api.openapi.Schema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "apps.api.errors.present",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "OAS_VERSION": "3.1.0",
    "TITLE": "BenchBench",
    "VERSION": "2",
    "DESCRIPTION": "Everything that staff can do in the admin, for programs. See docs/api.md.",
    "SCHEMA_PATH_PREFIX": "/api/v2",
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},
    "AUTHENTICATION_WHITELIST": [
        "apps.api.access.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "apps.benchmarks.models.Run.Status",
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
    "SERVE_PERMISSIONS": ["apps.api.access.permissions.IsStaff"],
    # From the wheel of drf-spectacular-sidecar, not from another site.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False, "validatorUrl": None},
}


CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [NONE],
        # Alpine, in which the shell of the admin is written, makes functions of the texts of attributes.
        "script-src": [SELF, UNSAFE_EVAL],
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
# Of django-rq's pages, which superusers alone see: scripts stand in them.
QUEUES: dict[str, Any] = {"script-src": [UNSAFE_INLINE]}
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "benchbench.site.downloads.NamelessFileUploadHandler",
]
