"""Access to objects and names: one rule for admin, API, pages and sockets."""

from typing import Any, TypeAlias, TypeVar, cast

from django.apps import apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from benchbench.decimals import join_words

FOR_JUDGES = ("judging", "accounts")  # apps
ROLES = ("viewer", "judge", "editor", "admin")  # groups that grant permissions; all others are teams
AnyUser: TypeAlias = User | AnonymousUser
M = TypeVar("M", bound=Model)


def visible(queryset: QuerySet[M], user: AnyUser, *, through: str = "") -> QuerySet[M]:
    """Return the rows of `queryset` that `user` may see.

    Active staff see their own rows, those of their teams and those without an owner. With the permission
    `view_all_<model>`, which superusers have, they see all rows. Other users see none. A model's `seen_by` defines
    which rows belong to a user: an operation belongs to the owner of its subject. `through` is the lookup path from
    the model to the model that decides for it (`"benchmark"` for runs).
    """
    if not (user.is_active and user.is_staff):
        return queryset.none()
    return _filter_seen(queryset, user, through)


def viewable(queryset: QuerySet[M], user: AnyUser, *, through: str = "") -> QuerySet[M]:
    """Return the rows of `visible`; none if the user may not view rows of the model.

    For rows of another model than that of the page, whose own permission is checked.
    """
    return visible(queryset, user, through=through) if permits(queryset.model, user, "view") else queryset.none()


def usable(queryset: QuerySet[M], owner: User | None, *, through: str = "") -> QuerySet[M]:
    """Return the rows of `queryset` from which a row of `owner` may be made; used when a name or a hash selects them.

    These are the rows that the owner sees. An inactive owner counts too, because commands continue their work. A row
    without an owner is visible to all staff, so it may use only rows without an owner. `through` is as in `visible`.
    """
    if owner is None:
        return queryset.filter(**{f"{through}__owner" if through else "owner": None})
    return _filter_seen(queryset, owner, through)


def usable_for(queryset: QuerySet[M], target: Any, *, through: str = "") -> QuerySet[M]:
    """Return the rows of `usable` for the owner of `target` that all of its team see too, so that it may name them."""
    rows = usable(queryset, target.owner, through=through)
    if target.owner_id is None or target.team_id is None:
        return rows
    prefix = f"{through}__" if through else ""
    return rows.filter(Q(**{f"{prefix}owner": None}) | Q(**{f"{prefix}team": target.team_id}))


def _filter_seen(queryset: QuerySet[M], user: AnyUser, through: str) -> QuerySet[M]:
    owned = find_owned(queryset.model, through)
    if user.has_perm(f"{owned._meta.app_label}.view_all_{owned._meta.model_name}"):
        return queryset
    return queryset.filter(owned.seen_by(user, f"{through}__" if through else ""))


def find_owned(model: Any, through: str) -> Any:
    """Return the model to which the lookup path `through` leads from `model`; "" leads to itself."""
    for name in filter(None, through.split("__")):
        model = model._meta.get_field(name).related_model
    return model


def staff(request: HttpRequest) -> User:
    """Return the user of a request to the admin."""
    return cast(User, request.user)


def judges_alone(user: AnyUser) -> bool:
    """Return whether a user may grade and see no results, as with the role judge alone (`PermissionsAtOnce`)."""
    return user.has_perm("judging.add_grade") and not user.has_perm("benchmarks.view_benchmark")


def list_teams(user: AnyUser) -> QuerySet[Group]:
    """Return the teams whose names a user may see and share rows with.

    A user with `view_all` on every model gets all teams; other users get their own. The groups of roles are not teams.
    """
    every = [
        f"{model._meta.app_label}.view_all_{model._meta.model_name}"
        for model in apps.get_models()
        if "view_all" in model._meta.default_permissions
    ]
    teams = Group.objects.exclude(name__in=ROLES)
    return teams if user.has_perms(every) else teams.filter(user=user.pk)


def list_colleagues(user: AnyUser) -> QuerySet[User]:
    """Return the active staff whose names a user may see: those of the user's teams, or all with `view_user`."""
    active = User.objects.filter(is_active=True, is_staff=True)
    if user.has_perm("auth.view_user"):
        return active
    mates = User.objects.filter(groups__in=user.groups.exclude(name__in=ROLES).values("pk"))
    return active.filter(Q(pk=user.pk) | Q(pk__in=mates.values("pk")))


def is_visible_to_viewers(row: Model, target: Any) -> bool:
    """Return whether all users who see `target`, as owner or by team, see `row` too, so that it may be named there."""
    owner, team = getattr(row, "owner_id", None), getattr(row, "team_id", None)
    target_access = getattr(target, "owner_id", None), getattr(target, "team_id", None)
    return owner is None or (owner == target_access[0] and target_access[1] in (None, team))


def may_view(row: Model, user: AnyUser) -> bool:
    """Return whether `user` sees a root of the object tree and may view rows of its model."""
    return _may(row, user, "view")


def may_change(row: Model, user: AnyUser) -> bool:
    """Return whether `user` sees a root of the object tree and may change rows of its model."""
    return _may(row, user, "change")


def _may(row: Model, user: AnyUser, act: str) -> bool:
    permitted = permits(type(row), user, act)
    return permitted and visible(type(row)._default_manager.filter(pk=row.pk), user).exists()


def permits(model: type[Model], user: AnyUser, act: str) -> bool:
    """Return whether the user has the permission for an act on rows of a model."""
    acts = ("view", "change") if act == "view" else (act,)  # to change includes viewing, as in the admin
    return any(user.has_perm(f"{model._meta.app_label}.{act}_{model._meta.model_name}") for act in acts)


def require(user: AnyUser, *permissions: str) -> None:
    """Raise PermissionDenied, with the first missing one in words, unless the user has the permissions."""
    for name in permissions:
        if not user.has_perm(name):
            raise PermissionDenied(describe_lack(name))


def describe_lack(permission: str) -> str:
    """Return in words what a user without a permission may not do, and who may: "You may not add indexes. …"."""
    label, _, codename = permission.partition(".")
    act, _, name = codename.rpartition("_")
    granting = Group.objects.filter(permissions__content_type__app_label=label, permissions__codename=codename)
    names = {*granting.values_list("name", flat=True)} - (set() if label in FOR_JUDGES else {"judge"})
    roles = [role for role in ROLES if role in names]
    words = join_words(roles).replace(" and ", " or ")
    remedy = f"Ask an administrator for the role {words}." if roles else "Only superusers may."
    return f"You may not {act.replace('_', ' ')} {apps.get_model(label, name)._meta.verbose_name_plural}. {remedy}"


class PermissionsAtOnce(ModelBackend):
    """Django's backend, but it reads the permissions of a user and of the user's groups in one query, not two.

    Of the role judge alone only those of FOR_JUDGES count, so that no results sway its grades. With another group that
    grants permissions, or a permission by name, a judge sees what viewers see.
    """

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if user_obj.is_active and not user_obj.is_superuser and obj is None and not hasattr(user_obj, "_perm_cache"):
            direct, group = Permission.objects.filter(user=user_obj), Permission.objects.filter(group__user=user_obj)
            permissions = Permission.objects.filter(Q(pk__in=direct.values("pk")) | Q(pk__in=group.values("pk")))
            rows = permissions.order_by().values_list("content_type__app_label", "codename")
            names = {f"{label}.{codename}" for label, codename in rows}
            if "judging.add_grade" in names and "judging.add_round" not in names and not direct.exists():
                groups = user_obj.groups.filter(permissions__isnull=False)
                granting = set(groups.order_by().values_list("name", flat=True).distinct())
                names = {name for name in names if granting != {"judge"} or name.partition(".")[0] in FOR_JUDGES}
            user_obj._perm_cache = names
        return super().get_all_permissions(user_obj, obj)
