"""Settings of REST framework and of the OpenAPI schema. Choices of a site are in the settings."""

from typing import Any

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
