"""Access to the API: authentication, permissions and throttling of requests.

A request is authenticated by a bearer token (JWT or personal), by the browser's session or, in development, not at all.
Only staff have access, within the token's scope and the user's permissions in the admin.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework_simplejwt.authentication import JWTAuthentication

from apps.accounts.models import AccessToken, Scope, SignIn
from apps.accounts.throttling import count, find_address
from apps.accounts.tokens import PREFIX, SIGN_IN, find_token
from apps.operations.admission import require_origin


class BearerAuthentication(JWTAuthentication):
    """Authentication by `Authorization: Bearer …`: a JWT, or a personal token, which begins with bb_.

    It is the first of the classes, so that unknown callers get a 401 with the way to authenticate. With DISABLE_AUTH
    an invalid token, such as an expired one, is ignored.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        header = self.get_header(request)
        try:
            raw = None if header is None else self.get_raw_token(header)
            return None if raw is None else find_user(raw)
        except AuthenticationFailed:
            if settings.DISABLE_AUTH:
                return None
            raise


def find_user(raw: bytes) -> tuple[Any, Any]:
    """Return the user of a bearer token, and the token. Raises AuthenticationFailed if it is invalid.

    For callers that carry the token outside a header, such as a WebSocket.
    """
    if not raw.startswith(PREFIX.encode()):
        jwt = JWTAuthentication()
        token = jwt.get_validated_token(raw)
        user = jwt.get_user(token)
        if not SignIn.objects.filter(pk=token.get(SIGN_IN), user_id=user.pk).exists():
            raise AuthenticationFailed("The token was revoked: sign in again.", code="token_not_valid")
        return user, token
    access_token = find_token(raw.decode("ascii", errors="replace"))
    if access_token is None:
        raise AuthenticationFailed("The token is unknown, revoked or expired: make another in the admin.")
    if not access_token.user.is_active:
        raise AuthenticationFailed("The user of the token is not active.")
    return access_token.user, access_token


def get_scope(auth: Any) -> str:
    """Return the scope of a request's token; a session, and a token without a scope, allow everything."""
    if isinstance(auth, AccessToken):
        return auth.scope
    return Scope.WRITE if auth is None else auth.get("scope", Scope.WRITE)


class NoAuthentication(BaseAuthentication):
    """Authentication of every caller as one user, with DISABLE_AUTH; the settings refuse that without DEBUG.

    Pages of other sites are refused: their forms, sent from the developer's own browser, would need no token.
    """

    def authenticate(self, request: Request) -> tuple[object, None] | None:
        if not settings.DISABLE_AUTH:
            return None
        origin = request.headers.get("Origin", "")
        require_origin({b"origin": origin.encode(), b"host": request.get_host().encode()})
        return open_user(), None


def open_user() -> User:
    """Return the user as whom DISABLE_AUTH authenticates every caller."""
    name = settings.DISABLE_AUTH_USER
    user = User.objects.filter(username=name, is_active=True, is_staff=True).first()
    if user is None:
        raise AuthenticationFailed(
            f"DISABLE_AUTH is on, but no active staff user is called {name!r}: make one with `manage.py "
            "createsuperuser`, or name another in DISABLE_AUTH_USER."
        )
    return user


class IsStaff(BasePermission):
    message = "Only staff may use the API: ask an administrator to make you staff."

    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user and request.user.is_active and request.user.is_staff)


class InScope(BasePermission):
    message = "The token may only read: use one with the scope write."
    code = "insufficient_scope"

    def has_permission(self, request: Request, view: Any) -> bool:
        # An unknown method is refused later, as such.
        operation = view.find_operation(request.method)
        return operation is None or operation.permission == "view" or get_scope(request.auth) == Scope.WRITE


class MayAct(BasePermission):
    """Permission check: the user has the permission of the admin that the operation needs."""

    def has_permission(self, request: Request, view: Any) -> bool:
        operation = view.find_operation(request.method)
        if operation is None:  # a method that the address lacks: answered 405 later
            return True
        act = operation.permission
        meta = view.model._meta
        self.message = f"You may not {act} any {meta.verbose_name}: ask an administrator for the permission."
        # Who may change may look, as in the admin.
        acts = ("view", "change") if act == "view" else (act,)
        return any(request.user.has_perm(f"{meta.app_label}.{name}_{meta.model_name}") for name in acts)


class Throttle(BaseThrottle):
    """Throttle by user; for anonymous requests, by address."""

    def allow_request(self, request: Request, view: Any) -> bool:
        is_authenticated = request.user and request.user.is_authenticated
        operation = view.find_operation(request.method)
        rate = operation.rate if operation else "read" if request.method in SAFE_METHODS else "write"
        count(rate, request.user.pk if is_authenticated else find_address(request))
        return True


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = BearerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A JWT of /api/v2/auth/token, or a personal token made in the admin.",
        }


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "rest_framework.authentication.SessionAuthentication"
    name = "session"
    priority = 1  # before drf-spectacular's own

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The session of the admin. Requests that change something must send X-CSRFToken too.",
        }
