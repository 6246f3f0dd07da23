"""Admin pages of users, groups and personal tokens.

Users can grant only permissions that they have. A group is both a role (its permissions) and a team (the rows shared
with it). Superusers may do everything.
"""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Count, ManyToManyField, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import mark_safe
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts.models import AccessToken
from apps.accounts.tokens import revoke_token
from apps.accounts.views import make_token
from benchbench.access import ROLES, AnyUser, list_teams
from benchbench.site.admin import FactAdmin
from benchbench.site.lists import ListAdmin
from benchbench.site.panels import Button, Page

STATES = {"active": "success", "expired": "warning", "revoked": "danger"}

admin.site.unregister(User)
admin.site.unregister(Group)
if settings.BENCHBENCH_OIDC_ISSUER:  # allauth's tables have no pages here
    for label in ("account", "socialaccount"):
        admin.site.unregister([*filter(admin.site.is_registered, apps.get_app_config(label).get_models())])


def list_permissions(user: AnyUser) -> QuerySet[Permission]:
    """Return the permissions of a user and of the user's groups, even if the user is inactive."""
    return Permission.objects.filter(
        Q(pk__in=Permission.objects.filter(user=user.pk).values("pk"))
        | Q(pk__in=Permission.objects.filter(group__user=user.pk).values("pk"))
    )


def list_groups(user: AnyUser) -> QuerySet[Group]:
    """Return the groups whose names a user may see: roles, which every site has, and teams."""
    return Group.objects.filter(Q(name__in=ROLES) | Q(pk__in=list_teams(user).values("pk")))


def list_assignable(user: AnyUser) -> QuerySet[Group]:
    """Return the groups that a user may assign: those that grant no permission and no row that the user lacks."""
    missing_permissions = Permission.objects.exclude(pk__in=list_permissions(user).values("pk"))
    return list_groups(user).exclude(pk__in=Group.objects.filter(permissions__in=missing_permissions).values("pk"))


def may_manage(user: AnyUser, account: User) -> bool:
    """Return whether `user` may change `account`. Setting a password allows signing in as that account."""
    if user.is_superuser:
        return True
    return not (
        account.is_superuser
        or list_permissions(account).exclude(pk__in=list_permissions(user).values("pk")).exists()
        or account.groups.exclude(pk__in=list_assignable(user).values("pk")).exists()
    )


def allow_superuser(_: object, request: HttpRequest, obj: Model | None = None) -> bool:
    """Return whether the user is a superuser, for the permissions of pages."""
    return bool(request.user.is_superuser)


def allow_staff(_: object, request: HttpRequest, obj: Model | None = None) -> bool:
    return bool(request.user.is_active and request.user.is_staff)


class PasswordForm(AdminPasswordChangeForm):
    """The form of another user's password. Django's help for it is HTML that is not marked as such."""

    usable_password_help_text = mark_safe(AdminPasswordChangeForm.usable_password_help_text)  # nosec # a constant


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ListAdmin):  # type: ignore[misc]  # of `get_form`, which passes all on
    """Admin of users. Staff may edit only users with no more permissions than their own, and grant no more."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = PasswordForm
    phone_columns = ("email",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or may_manage(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete a user with log entries, which would be deleted too. Make the account inactive instead."""
        permitted = super().has_delete_permission(request, obj) and (obj is None or may_manage(request.user, obj))
        return permitted and not (obj is not None and LogEntry.objects.filter(user=obj).exists())

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        fields = list(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else [*fields, "is_superuser"]

    def formfield_for_manytomany(self, db_field: ManyToManyField, request: HttpRequest, **kwargs: Any) -> Any:
        if not request.user.is_superuser:
            choices = {"groups": list_assignable, "user_permissions": list_permissions}
            kwargs["queryset"] = choices[db_field.name](request.user)
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ListAdmin):  # type: ignore[misc]  # stubs of `get_list_display` differ
    """Admin of groups. Only superusers create and change them; others see the roles and the teams known to them.

    Changing a group grants or withdraws permissions for all its members at once.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).filter(pk__in=list_groups(request.user).values("pk"))

    list_display = ("name", "members")

    def annotate_rows(self, request: HttpRequest, rows: QuerySet[Group]) -> QuerySet[Group]:
        return super().annotate_rows(request, rows).annotate(member_count=Count("user"))

    @admin.display(description="members", ordering="member_count")
    def members(self, group: Group) -> str:
        return f"{getattr(group, 'member_count', 0):,}"

    delete_confirmation_template = "accounts/group_deleting.html"
    has_add_permission = has_change_permission = has_delete_permission = allow_superuser


@admin.register(AccessToken)
class AccessTokenAdmin(FactAdmin):
    """Admin of tokens. All staff create and revoke their own; superusers see and revoke everyone's."""

    list_display = ("name", "user", "scope", "state_label", "last_used_at", "expires_at", "created_at")
    list_filter = ("scope",)
    search_fields = ("name", "user__username")
    actions = ("revoke_selected",)
    pages = (Page("add/", make_token, "accounts_accesstoken_add"),)
    fieldsets = (
        (None, {"fields": (("name", "user"), ("scope", "hint"), ("expires_at", "last_used_at"))}),
        ("Facts", {"fields": (("created_at", "revoked_at"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessToken]:
        tokens = AccessToken.objects.select_related("user")
        return tokens if request.user.is_superuser else tokens.filter(user=request.user.pk)

    has_module_permission = has_add_permission = has_act_permission = has_view_permission = allow_staff

    @admin.action(description="Revoke", permissions=["act"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        def revoke(token: AccessToken) -> str:
            revoke_token(token)
            return f'The token "{token}" is revoked and no longer works.'

        return self.apply_each(request, queryset, revoke)

    @display(description="state", label=STATES)
    def state_label(self, token: AccessToken) -> str:
        return token.state

    def list_buttons(self, request: HttpRequest, obj: AccessToken) -> list[Button]:
        return [] if obj.revoked_at else [Button("Revoke", "block", "revoke_selected")]
