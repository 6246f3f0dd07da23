"""Roles: the groups that a site begins with, each with what its members may do to the rows that they see.

Who sees which rows is another question: an owner's, a team's, and all for administrators. Migrations make the roles; a
site changes them as it likes.
"""

from typing import Any

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions

JUDGES = ("judging.add_grade",)
ACCOUNTS = ("auth.add_user", "auth.change_user", "auth.delete_user", "auth.view_user", "auth.view_group")
# Acts on every model of ours, and further permissions by name.
RULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "viewer": (("view",), ()),
    "judge": (("view",), JUDGES),
    "editor": (("add", "change", "delete", "view"), ()),
    "admin": (("add", "change", "delete", "view", "view_all"), ACCOUNTS),
}


def permissions_of(role: str) -> set[str]:
    """Return the permissions of a role, "benchmarks.view_run", by the models that there are."""
    acts, names = RULES[role]
    ours = (model for config in installed.get_app_configs() if is_ours(config) for model in config.get_models())
    return set(names) | {
        f"{model._meta.app_label}.{act}_{model._meta.model_name}"
        for model in ours
        for act in acts
        if act in model._meta.default_permissions
    }


def make_roles(apps: Any, schema_editor: Any = None) -> None:
    """Make the groups of the roles that are not there, with their permissions; for a migration.

    A group that has the name of a role is somebody's already, and left as it is: its members asked for nothing.
    """
    for config in installed.get_app_configs():
        if is_ours(config) or config.label == "auth":
            create_permissions(config, verbosity=0)  # Django makes them after the last migration
    permission = apps.get_model("auth", "Permission")
    rows = permission.objects.values_list("pk", "content_type__app_label", "codename")
    keys = {f"{label}.{codename}": pk for pk, label, codename in rows}
    for role in RULES:
        group, made = apps.get_model("auth", "Group").objects.get_or_create(name=role)
        if made:
            group.permissions.set([keys[name] for name in sorted(permissions_of(role)) if name in keys])


def is_ours(config: Any) -> bool:
    return bool(config.name.startswith("apps."))
