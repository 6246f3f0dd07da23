"""Sign-in by OpenID Connect: the only two pages of django-allauth, and our answers to its questions.

Imported only where an issuer is configured. Its flow ends in `pre_social_login`, before its own accounts and forms.
"""

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.db import DataError, IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from redis.exceptions import RedisError
from requests import RequestException
from rest_framework.exceptions import Throttled

from apps.accounts.single_sign_on import SignInRefusedError, admit, read_person
from apps.accounts.throttling import count, find_address, uncount
from benchbench.site.pages import find_next_page

logger = logging.getLogger(__name__)
LONGEST_SUBJECT = 191  # characters, that allauth stores
REQUIRED_CLAIMS = ("iss", "sub", "aud", "exp", "iat")
COUNTED = "single_sign_on_counted"  # in the session: the key of the counted attempt
FAILED = "Signing in at the sign-in service failed: try again, or sign in with a password."
TOO_MANY = "Too many attempts came from your address: wait a minute, and try again."
# A provider that does not keep to the rules or sends what cannot be stored, no Redis, or two callbacks of a new person.
BROKEN = (OAuth2Error, RequestException, KeyError, ValueError, TypeError, RedisError, IntegrityError, DataError)


class VerifiedAdapter(OpenIDConnectOAuth2Adapter):
    """The provider of the settings. Its ID tokens must be signed by a key that it publishes."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request, settings.BENCHBENCH_OIDC_ID)

    @property
    def openid_config(self) -> Any:
        config = super().openid_config
        if str(config.get("issuer")).rstrip("/") != settings.BENCHBENCH_OIDC_ISSUER:
            raise OAuth2Error("The provider names another issuer than BENCHBENCH_OIDC_ISSUER.")
        return config

    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        data = super().get_access_token_data(*args, **kwargs)
        self.did_fetch_access_token = False  # else allauth trusts the connection and skips the signature
        return data

    def _decode_id_token(self, app: Any, id_token: str) -> Any:
        claims = super()._decode_id_token(app, id_token)
        check_claims(claims, app.client_id)
        return claims

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        return request.build_absolute_uri(reverse("single_sign_on_callback"))


def check_claims(claims: Mapping[str, object], client: str) -> None:
    """Raise OAuth2Error for claims of a verified ID token that OpenID Connect Core 1.0, 3.1.3.7, forbids to accept.

    PyJWT checks the times that a token has, and that this site is among its audiences.
    """
    if missing := [name for name in REQUIRED_CLAIMS if not claims.get(name)]:
        raise OAuth2Error(f"The ID token lacks {', '.join(missing)}.")
    if len(str(claims["sub"])) > LONGEST_SUBJECT:
        raise OAuth2Error(f"The subject of the ID token has more than {LONGEST_SUBJECT} characters.")
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    is_shared = any(audience != client for audience in audiences)
    if claims.get("azp", None if is_shared else client) != client:
        raise OAuth2Error("The ID token was issued to another client.")


class SiteAdapter(DefaultSocialAccountAdapter):
    """Answers to allauth: the configured provider, and who enters."""

    def list_apps(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the provider of the settings alone; rows of allauth's table do not count."""
        return [app for app in super().list_apps(*args, **kwargs) if app.pk is None]

    def on_authentication_error(
        self, request: HttpRequest, *args: Any, exception: Exception | None = None, **kwargs: Any
    ) -> NoReturn:
        raise ImmediateHttpResponse(fail(request, exception or request.GET.get("error")))

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> NoReturn:
        raise ImmediateHttpResponse(enter(request, sociallogin))


def enter(request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
    """Sign in the person that the provider authenticated, or refuse with a sentence."""
    account = sociallogin.account
    claims = account.extra_data
    SocialAccount.objects.filter(pk=account.pk).update(extra_data={})  # allauth has just stored the claims
    try:
        if "id_token" not in claims:
            raise SignInRefusedError("The sign-in service sent no ID token: its client needs the scope openid.")
        person = read_person(claims["id_token"], claims.get("userinfo") or {})
        with transaction.atomic():
            user = admit(person, account.user if account.pk else None)
            SocialAccount.objects.update_or_create(provider=account.provider, uid=account.uid, defaults={"user": user})
    except SignInRefusedError as error:
        logger.warning("Single sign-on was refused: %s", error.message)
        return refuse(request, error.message)
    if key := request.session.pop(COUNTED, None):
        uncount(key)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return redirect(find_next_page(request, sociallogin.state.get("next") or "") or "admin:index")


def refuse(request: HttpRequest, sentence: str) -> HttpResponse:
    """Return to the sign-in page with a sentence."""
    messages.error(request, sentence)
    return redirect("admin:login")


def fail(request: HttpRequest, cause: object) -> HttpResponse:
    """Return to the sign-in page, and log the beginning of the cause."""
    logger.warning("Single sign-on failed: %.300r", cause)
    return refuse(request, FAILED)


@never_cache
@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    try:
        request.session[COUNTED] = count("auth", find_address(request))
        provider = VerifiedAdapter(request).get_provider()
        provider.oauth2_adapter_class = lambda request, provider_id: VerifiedAdapter(request)
        answer: HttpResponse = provider.redirect(request, "login", next_url=request.GET.get("next"))
    except Throttled:
        return refuse(request, TOO_MANY)
    except BROKEN as error:
        return fail(request, error)
    return answer


@never_cache
@require_GET
def finish(request: HttpRequest) -> HttpResponse:
    """Take the browser back from the provider."""
    try:
        answer: HttpResponse = OAuth2CallbackView.adapter_view(VerifiedAdapter)(request)
    except BROKEN as error:
        return fail(request, error)
    return answer


urlpatterns = [
    path("", start, name="single_sign_on"),
    path("callback/", finish, name="single_sign_on_callback"),
]
