"""Signing in on the wire."""

from rest_framework import serializers

from apps.api.fields import Choice, StrictSerializer, Text
from apps.api.models import Scope


class Credentials(StrictSerializer):
    """Who signs in, and for what."""

    username = Text(max_length=150)
    password = Text(max_length=1000, trim_whitespace=False, style={"input_type": "password"})
    scope = Choice(
        Scope.choices,
        required=False,
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
