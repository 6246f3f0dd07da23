"""Admin pages of the tokens of users; `accounts` has those of users and groups, `log` of what they did."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.decorators import display

from apps.api import accounts, log, views  # noqa: F401 (the first two register their pages)
from apps.api.access.tokens import revoke_token
from apps.api.models import AccessToken
from benchbench.site.admin import FactAdmin
from benchbench.site.panels import Button, Page

STATES = {"active": "success", "expired": "warning", "revoked": "danger"}


@admin.register(AccessToken)
class AccessTokenAdmin(FactAdmin):
    """Every staff member makes and revokes tokens of their own; superusers see, and revoke, those of all."""

    list_display = ("name", "user", "scope", "state_label", "last_used_at", "expires_at", "created_at")
    list_filter = ("scope",)
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    actions = ("revoke_selected",)
    pages = (Page("add/", views.make_token, "api_accesstoken_add"),)
    fieldsets = (
        (None, {"fields": (("name", "user"), ("scope", "hint"), ("expires_at", "last_used_at"))}),
        ("Facts", {"fields": (("created_at", "revoked_at"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessToken]:
        tokens = AccessToken.objects.select_related("user")
        return tokens if request.user.is_superuser else tokens.filter(user=request.user.pk)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_act_permission(self, request: HttpRequest) -> bool:
        return True

    @admin.action(description="Revoke", permissions=["act"])
    def revoke_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        def revoke(token: AccessToken) -> str:
            revoke_token(token)
            return f'The token "{token}" is revoked: whoever sends it is refused.'

        return self.each(request, queryset, revoke)

    @display(description="state", label=STATES)
    def state_label(self, token: AccessToken) -> str:
        return token.state

    def buttons(self, request: HttpRequest, obj: AccessToken) -> list[Button]:
        return [] if obj.revoked_at else [Button("Revoke", "block", "revoke_selected")]
