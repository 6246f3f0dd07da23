"""Roles: the initial groups of a site, each with the permissions of its members on the rows that they see.

Visibility of rows is separate: users see their own and their teams' rows, administrators all. Migrations create the
roles; a site may change them.
"""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.contrib.auth.management import create_permissions

JUDGES = ("judging.add_grade",)
ACCOUNTS = ("auth.add_user", "auth.change_user", "auth.delete_user", "auth.view_user", "auth.view_group")
# Actions on every model of ours, and further permissions by name.
RULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "viewer": (("view",), ()),
    "judge": (("view",), JUDGES),
    "editor": (("add", "change", "delete", "view"), ()),
    "admin": (("add", "change", "delete", "view", "view_all"), ACCOUNTS),
}


def list_role_permissions(role: str) -> set[str]:
    """Return the permissions of a role, such as "benchmarks.view_run", for all installed models."""
    acts, names = RULES[role]
    ours = (model for config in installed.get_app_configs() if is_ours(config) for model in config.get_models())
    return set(names) | {
        f"{model._meta.app_label}.{act}_{model._meta.model_name}"
        for model in ours
        for act in acts
        if act in model._meta.default_permissions
    }


def make_roles(apps: Any, schema_editor: object = None) -> None:
    """Create the missing groups of the roles with their permissions, in a migration.

    Leaves an existing group with the name of a role unchanged, so that its members gain no permissions.
    """
    for config in installed.get_app_configs():
        if is_ours(config) or config.label == "auth":
            create_permissions(config, verbosity=0)  # Django creates them only after the last migration
    permission = apps.get_model("auth", "Permission")
    rows = permission.objects.values_list("pk", "content_type__app_label", "codename")
    keys = {f"{label}.{codename}": pk for pk, label, codename in rows}
    for role in RULES:
        group, is_new = apps.get_model("auth", "Group").objects.get_or_create(name=role)
        if is_new:
            group.permissions.set([keys[name] for name in sorted(list_role_permissions(role)) if name in keys])


def is_ours(config: AppConfig) -> bool:
    return bool(config.name.startswith("apps."))
