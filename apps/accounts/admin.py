"""Admin pages of users, groups, personal tokens, the bin and the log.

Users can grant only permissions that they have. A group is both a role (its permissions) and a team (the rows shared
with it). Superusers may do everything.
"""

from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import ManyToManyField, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat, truncatechars
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts.bin import empty, list_deletions, restore
from apps.accounts.models import AccessToken, Deletion
from apps.accounts.tokens import revoke_token
from apps.accounts.views import make_token
from benchbench.access import ROLES, AnyUser, list_teams
from benchbench.decimals import counted
from benchbench.errors import ConflictError
from benchbench.site.admin import FactAdmin, LargeAdmin
from benchbench.site.lists import render_distance
from benchbench.site.panels import Button, Page, build_list_url
from benchbench.site.strict import StrictAdmin

ACTS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted"}
COLOURS = {"added": "success", "changed": "info", "deleted": "danger"}
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
class UserAdmin(DjangoUserAdmin, StrictAdmin):  # type: ignore[misc]  # of `get_form`, which passes all on
    """Admin of users. Staff may edit only users with no more permissions than their own, and grant no more."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = PasswordForm

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
class GroupAdmin(DjangoGroupAdmin, StrictAdmin):
    """Admin of groups. Only superusers create and change them; others see the roles and the teams known to them.

    Changing a group grants or withdraws permissions for all its members at once.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).filter(pk__in=list_groups(request.user).values("pk"))

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


@admin.register(Deletion)
class DeletionAdmin(FactAdmin):
    """Admin of the bin. Who may delete rows of a kind restores those that they saw; superusers empty it early."""

    list_display = ("name", "noun", "deleted", "deleted_by", "until", "space")
    phone_columns = ("deleted", "until")
    empty_words = f"The bin is empty. It keeps rows for {counted(settings.BENCHBENCH_KEEP_DELETED_DAYS, 'day')}."
    search_fields = ("name",)
    list_select_related = ("deleted_by",)
    actions = (direct_action := "restore_selected", "rename_selected")
    fieldsets = (
        (
            None,
            {
                "fields": (("name", "noun"), ("created_at", "deleted_by"), ("until", "space"), "contents"),
                "description": "Restored as it was, with its history and all rows. Files of a machine, such as mapped "
                "vectors, are made again at first use. It no longer names users and rows that were deleted later. A "
                "schedule whose time has passed starts once.",
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Deletion]:
        return list_deletions(request.user)

    has_module_permission = has_act_permission = has_view_permission = allow_staff
    has_delete_permission = allow_superuser

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        if not self.has_delete_permission(request):
            raise PermissionDenied
        return super().delete_view(request, object_id, extra_context)

    def delete_row(self, obj: Deletion) -> None:
        empty(obj)

    def list_concerned(self, row: Deletion) -> list[Model]:
        """Return what was restored: the deletion itself is gone."""
        return list(apps.get_model(row.kind)._default_manager.filter(pk=row.object_id))

    @admin.action(description="Restore", permissions=["act"])
    def restore_selected(self, request: HttpRequest, queryset: Any, *, rename: bool = False) -> HttpResponse | None:
        addresses: list[str] = []

        @transaction.atomic
        def restore_one(deletion: Deletion) -> str:
            row = restore(deletion, rename=rename)
            pages = self.admin_site.get_model_admin(type(row))
            if not pages.has_delete_permission(request, row):
                raise ConflictError(f"“{row}” was not restored: you may not delete it.")
            addresses.append(pages.find_url(row))
            return f"“{row}” is restored."

        if not queryset:
            self.message_user(request, "Nothing was restored: it is no longer in the bin.", messages.ERROR)
        self.apply_each(request, queryset, restore_one)
        return redirect(addresses[0] if len(addresses) == 1 else build_list_url(Deletion))

    @admin.action(description="Restore under another name", permissions=["act"])
    def rename_selected(self, request: HttpRequest, queryset: QuerySet[Model]) -> HttpResponse | None:
        return self.restore_selected(request, queryset, rename=True)

    def list_buttons(self, request: HttpRequest, obj: Deletion) -> list[Button]:
        return [
            Button("Restore", "undo", "restore_selected", primary=True),
            Button("Restore under another name", "undo", "rename_selected"),
        ]

    @display(description="kind", ordering="kind")
    def noun(self, deletion: Deletion) -> str:
        return str(apps.get_model(deletion.kind)._meta.verbose_name)

    @display(description="deleted", ordering="created_at")
    def deleted(self, deletion: Deletion) -> str:
        return render_distance(deletion.created_at)

    @display(description="space", ordering="size")
    def space(self, deletion: Deletion) -> str:
        return filesizeformat(deletion.size)

    @display(description="with it")
    def contents(self, deletion: Deletion) -> str:
        counted_rows = deletion.counts | {deletion.kind: deletion.counts.get(deletion.kind, 1) - 1}
        counts = [(self._name_part(apps.get_model(kind)), count) for kind, count in counted_rows.items()]
        return ", ".join(counted(count, noun) for noun, count in counts if noun and count) or "–"


@admin.register(LogEntry)
class LogEntryAdmin(LargeAdmin):
    """Log of all changes, also to deleted rows, for superusers. The history of a row shows its own entries."""

    list_display = ("action_time", "user", "act", "kind", "row", "summary")
    list_filter = ("action_flag", "action_time", ("content_type", admin.RelatedOnlyFieldListFilter))
    search_fields = ("=user__username", "=object_id", "object_repr")
    search_help_text = "User name, object id, or words of the object's name"
    ordering = ("-action_time", "-id")
    fieldsets = (
        (None, {"fields": (("action_time", "user"), "act", "sentence")}),
        ("Object", {"fields": (("kind", "row"), "object_id")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[LogEntry]:
        return LogEntry.objects.select_related("user", "content_type")

    has_module_permission = has_view_permission = allow_superuser

    @display(description="act", ordering="action_flag", label=COLOURS)
    def act(self, entry: LogEntry) -> str:
        return ACTS[entry.action_flag]

    @display(description="kind", ordering="content_type")
    def kind(self, entry: LogEntry) -> str:
        return str(entry.content_type.name) if entry.content_type else "–"

    @display(description="row", ordering="object_repr")
    def row(self, entry: LogEntry) -> str:
        """Return the name that the row had then, with a link unless it was deleted."""
        name, url = truncatechars(entry.object_repr, 80), entry.get_admin_url()
        if url is None or entry.is_deletion():
            return name
        return format_html('<a class="text-link" href="{}">{}</a>', url, name)

    @display(description="change")
    def summary(self, entry: LogEntry) -> str:
        return truncatechars(entry.get_change_message(), 160)

    @display(description="change")
    def sentence(self, entry: LogEntry) -> str:
        return entry.get_change_message()
