"""Signing in with a password, going on, signing out."""

from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from rest_framework import serializers
from rest_framework.request import Request

from apps.accounts.models import Scope
from apps.accounts.tokens import exchange, sign_in, sign_out
from apps.api.access import BearerAuthentication
from apps.api.fields import StrictSerializer, Text, Validated
from apps.api.resource import Resource, post


class Credentials(StrictSerializer):
    """User name, password and scope."""

    username = Text(max_length=150)
    password = Text(max_length=1000, trim_whitespace=False, style={"input_type": "password"})
    scope = serializers.ChoiceField(
        Scope.choices,
        default=Scope.WRITE.value,
        help_text="read: look only; write: everything that you may do.",
    )


class Refreshing(StrictSerializer):
    """The last refresh token."""

    refresh = Text(max_length=5000)


class TokenPair(serializers.Serializer):
    """A new pair of tokens."""

    access = serializers.CharField(help_text="Sent as Authorization: Bearer; lasts minutes.")
    refresh = serializers.CharField(help_text="Exchanged for the next pair, once; lasts days.")


@method_decorator(never_cache, name="dispatch")  # no cache may store a token
class SigningIn(Resource):
    """Operations for clients without a token."""

    route = "auth"
    authentication_classes: list[object] = []
    permission_classes: list[object] = []

    @post("/token", TokenPair, Credentials, throttle="auth", keeps_answer=False)
    def sign_in(self, credentials: Validated) -> dict[str, str]:
        """Sign in with a password for a pair of tokens."""
        return sign_in(**credentials, request=self.request._request)

    @post("/token/refresh", TokenPair, Refreshing, throttle="auth", keeps_answer=False)
    def refresh(self, data: Validated) -> dict[str, str]:
        """Exchange a refresh token for the next pair; a token sent a second time ends its sign-in."""
        return exchange(**data)

    @post("/token/revoke", None, Refreshing, throttle="auth", keeps_answer=False)
    def sign_out(self, data: Validated) -> None:
        """End a sign-in by its refresh token, and all tokens issued from it."""
        sign_out(**data)

    def get_authenticate_header(self, request: Request) -> str:
        return BearerAuthentication().authenticate_header(request)  # without one a wrong password would be a 403
