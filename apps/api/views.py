"""Pages about tokens."""

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from apps.api.access.tokens import issue_token
from apps.api.forms import TokenForm
from benchbench.site.pages import form_page, staff
from benchbench.site.panels import change_url


@never_cache
@sensitive_variables("secret", "context")
def make_token(request: HttpRequest, model_admin: ModelAdmin) -> HttpResponse:
    """Ask for a name, and answer with the secret: this page alone ever shows it."""

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
        return TemplateResponse(request, "api/token.html", context)

    return form_page(
        request,
        model_admin,
        TokenForm,
        act,
        title="Make a token",
        submit="Make the token",
        intro="With a token a program uses the API as you: it sees what you see, and may do no more than you. "
        "It ends with your password: a new one revokes all your tokens.",
    )
