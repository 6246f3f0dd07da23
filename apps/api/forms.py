"""Forms of the admin for signing in and for making a token."""

import logging
from datetime import timedelta
from typing import Any

from django import forms
from django.utils import timezone
from redis.exceptions import RedisError
from rest_framework.exceptions import Throttled
from unfold.forms import AuthenticationForm

from apps.api.access.signing_in import count_guess
from apps.api.access.throttling import address_of, uncount
from apps.api.models import Scope
from benchbench.site.pages import PageForm

MOST_DAYS = 3650
logger = logging.getLogger(__name__)


class SignInForm(AuthenticationForm):
    """The admin's own, with as many wrong passwords as the API takes, or whoever guesses would guess here."""

    def clean(self) -> Any:
        try:
            counted = count_guess(self.cleaned_data.get("username", ""), address=address_of(self.request))
        except Throttled as error:
            minutes = -(-int(error.wait or 1) // 60)
            raise forms.ValidationError(
                f"Too many wrong passwords came from your address: wait {minutes} min, and try again.", code="throttled"
            ) from None
        except RedisError:
            logger.exception("Redis does not answer, and it counts wrong passwords: nobody can sign in.")
            raise forms.ValidationError(
                "Signing in needs Redis, which does not answer: try again in a moment.", code="unavailable"
            ) from None
        cleaned = super().clean()  # raises for a wrong one, which stays counted
        for key in counted:
            uncount(key)
        return cleaned


class TokenForm(PageForm):
    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput({"placeholder": "nightly pipeline"}),
        help_text="Where the token will be used, so that you know later which to revoke.",
    )
    scope = forms.ChoiceField(
        choices=[
            (Scope.READ.value, "Read: look, judge by gates, and change nothing"),
            (Scope.WRITE.value, "Write: everything that you may do"),
        ],
    )
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        initial=90,
        label="Valid for days",
        widget=forms.NumberInput({"placeholder": "until it is revoked"}),
        help_text="Empty: until it is revoked.",
    )

    sections = (("", "", ("name", "scope", "days")),)

    def clean_days(self) -> int | None:
        days = self.cleaned_data["days"]
        self.cleaned_data["expires_at"] = timezone.now() + timedelta(days=days) if days else None
        return days
