"""Forms for signing in to the admin and for making a token, and the page that shows a new token."""

import logging
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from redis.exceptions import RedisError
from rest_framework.exceptions import Throttled
from unfold.forms import AuthenticationForm

from apps.accounts.models import Scope
from apps.accounts.throttling import count_guess, find_address, uncount
from apps.accounts.tokens import issue_token
from benchbench.access import staff
from benchbench.site.pages import PageForm, show_form
from benchbench.site.panels import change_url

MOST_DAYS = 3650
logger = logging.getLogger(__name__)


class SignInForm(AuthenticationForm):
    """The admin's sign-in form with the API's limits on wrong passwords, so that guessing here gains nothing."""

    @property
    def single_sign_on(self) -> str:
        """Name of the other way to sign in; empty if none is configured."""
        return settings.BENCHBENCH_OIDC_NAME if settings.BENCHBENCH_OIDC_ISSUER else ""

    def clean(self) -> Any:
        try:
            counted = count_guess(self.cleaned_data.get("username", ""), address=find_address(self.request))
        except Throttled as error:
            minutes = -(-int(error.wait or 1) // 60)
            raise forms.ValidationError(
                f"Too many wrong passwords came from your address: wait {minutes} min, and try again.", code="throttled"
            ) from None
        except RedisError:
            logger.exception("Redis does not answer, so signing in is impossible: it counts wrong passwords.")
            raise forms.ValidationError(
                "Signing in needs Redis, which does not answer: try again in a moment.", code="unavailable"
            ) from None
        cleaned = super().clean()  # raises for a wrong password, which stays counted
        for key in counted:
            uncount(key)
        return cleaned


class TokenForm(PageForm):
    name = forms.CharField(
        max_length=100,
        widget=forms.TextInput({"placeholder": "nightly pipeline"}),
        help_text="Where you will use the token, to know which one to revoke later.",
    )
    scope = forms.ChoiceField(
        choices=[
            (Scope.READ.value, "Read: read everything, run gates, change nothing"),
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


@never_cache
@sensitive_variables("secret", "context")
def make_token(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Ask for a name, create the token and show its secret, on this page only."""

    def act(form: TokenForm) -> HttpResponse:
        values = form.cleaned_data
        token, secret = issue_token(
            staff(request), name=values["name"], scope=values["scope"], expires_at=values["expires_at"]
        )
        context = model_admin.admin_site.each_context(request) | {
            "title": f'The token "{token}"',
            "opts": model_admin.opts,
            "token": token,
            "secret": secret,
            "url": change_url(token),
            "root": request.build_absolute_uri("/api/v2"),
        }
        return TemplateResponse(request, "accounts/token.html", context)

    return show_form(
        request,
        model_admin,
        TokenForm,
        act,
        title="Make a token",
        submit="Make the token",
        intro=(
            "A program uses the API with a token on your behalf, with at most your permissions. Changing your "
            "password revokes all your tokens."
        ),
    )
