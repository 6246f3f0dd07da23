"""Signing in with a password, going on, signing out."""

from typing import Any

from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import Scope
from apps.accounts.tokens import exchange, sign_in, sign_out
from apps.api.access import BearerAuthentication
from apps.api.endpoint import Endpoint
from apps.api.fields import StrictSerializer, Text, valid


class Credentials(StrictSerializer):
    """Who signs in, and for what."""

    username = Text(max_length=150)
    password = Text(max_length=1000, trim_whitespace=False, style={"input_type": "password"})
    scope = serializers.ChoiceField(
        Scope.choices,
        default=Scope.WRITE.value,
        help_text="read: look only; write: everything that you may do.",
    )


class Refreshing(StrictSerializer):
    """The refresh token that was answered last."""

    refresh = Text(max_length=5000)


class TokenPair(serializers.Serializer):
    """A new pair of tokens."""

    access = serializers.CharField(help_text="Sent as Authorization: Bearer; lasts minutes.")
    refresh = serializers.CharField(help_text="Exchanged for the next pair, once; lasts days.")


@method_decorator(never_cache, name="dispatch")  # nobody in between keeps a token
class OpenEndpoint(Endpoint):
    """An endpoint for those who have no token yet."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttles = {"POST": "auth"}

    def get_authenticate_header(self, request: Request) -> str:
        return BearerAuthentication().authenticate_header(request)  # without one a wrong password would be a 403


class SignIn(OpenEndpoint):
    @extend_schema(operation_id="sign_in", request=Credentials, responses=TokenPair)
    def post(self, request: Request) -> Response:
        """Sign in with a password for a pair of tokens."""
        credentials = valid(Credentials, request.data)
        pair = sign_in(
            credentials["username"], credentials["password"], scope=credentials["scope"], request=request._request
        )
        return Response(pair)


class Refresh(OpenEndpoint):
    @extend_schema(operation_id="refresh", request=Refreshing, responses=TokenPair)
    def post(self, request: Request) -> Response:
        """Exchange a refresh token for the next pair; one that comes a second time ends its sign-in."""
        return Response(exchange(valid(Refreshing, request.data)["refresh"]))


class SignOut(OpenEndpoint):
    @extend_schema(operation_id="sign_out", request=Refreshing, responses={204: None})
    def post(self, request: Request) -> Response:
        """End a sign-in by its refresh token, and every token that came of it."""
        sign_out(valid(Refreshing, request.data)["refresh"])
        return Response(status=204)
