"""Policies: what browsers are told of the parts of a page, and where uploads lie. docs/security.md says why."""

from typing import Any

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE

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
    "benchbench.site.uploads.NamelessFileUploadHandler",
]
