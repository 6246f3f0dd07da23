"""Permissions of a user, read at once."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Permission
from django.db.models import Q


class PermissionsAtOnce(ModelBackend):
    """Django's own backend, which reads the permissions of a user and of the user's groups in one query, not two."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if user_obj.is_active and not user_obj.is_superuser and obj is None and not hasattr(user_obj, "_perm_cache"):
            own, of_groups = Permission.objects.filter(user=user_obj), Permission.objects.filter(group__user=user_obj)
            mine = Permission.objects.filter(Q(pk__in=own.values("pk")) | Q(pk__in=of_groups.values("pk")))
            told = mine.order_by().values_list("content_type__app_label", "codename")
            user_obj._perm_cache = {f"{label}.{codename}" for label, codename in told}
        return super().get_all_permissions(user_obj, obj)
