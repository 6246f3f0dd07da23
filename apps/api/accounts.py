"""Accounts and groups as their pages may change them: nobody gives what they lack themselves.

A group is a role, by its permissions, and a team, by what is shared with it. Superusers may do everything.
"""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from benchbench.access import ROLES, teams_of
from benchbench.site.strict import StrictAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


def held_by(user: Any) -> QuerySet[Permission]:
    """Return the permissions of a user and of the user's groups, also of one who may not sign in now."""
    return Permission.objects.filter(
        Q(pk__in=Permission.objects.filter(user=user).values("pk"))
        | Q(pk__in=Permission.objects.filter(group__user=user).values("pk"))
    )


def known_to(user: Any) -> QuerySet[Group]:
    """Return the groups whose names a user may see: roles, which every site has, and teams."""
    return Group.objects.filter(Q(name__in=ROLES) | Q(pk__in=teams_of(user).values("pk")))


def givable(user: Any) -> QuerySet[Group]:
    """Return the groups that a user may give: with no permission, and no row, that the user lacks."""
    beyond = Permission.objects.exclude(pk__in=held_by(user).values("pk"))
    return known_to(user).exclude(pk__in=Group.objects.filter(permissions__in=beyond).values("pk"))


def may_manage(user: Any, other: User) -> bool:
    """Tell whether a user may change the account of another: who sets a password may sign in with it."""
    if user.is_superuser:
        return True
    return not (
        other.is_superuser
        or held_by(other).exclude(pk__in=held_by(user).values("pk")).exists()
        or other.groups.exclude(pk__in=givable(user).values("pk")).exists()
    )


@admin.register(User)
class UserAdmin(DjangoUserAdmin, StrictAdmin):
    """Whoever may change users changes those who may do no more than they, and gives them no more."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or may_manage(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of somebody who did something the account is made inactive: what was done would go with it."""
        permitted = super().has_delete_permission(request, obj) and (obj is None or may_manage(request.user, obj))
        return permitted and not (obj is not None and LogEntry.objects.filter(user=obj).exists())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = list(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else [*fields, "is_superuser"]

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if not request.user.is_superuser:
            kwargs["queryset"] = {"groups": givable, "user_permissions": held_by}[db_field.name](request.user)
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, StrictAdmin):
    """Superusers make and change groups; who may look at them sees roles and the teams that they know.

    To change a group is to give, or to take, for all its members at once.
    """

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).filter(pk__in=known_to(request.user).values("pk"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)
