"""Permissions of requests: staff only, no more than the token allows, and what the user may do in the admin."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.api.access.authentication import scope_of
from apps.api.models import Scope


class IsStaff(BasePermission):
    message = "Only staff may use the API: ask an administrator to make you staff."

    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user and request.user.is_active and request.user.is_staff)


class InScope(BasePermission):
    message = "The token may only read: use one with the scope write."
    code = "insufficient_scope"

    def has_permission(self, request: Request, view: Any) -> bool:
        return view.only_reads(request.method) or scope_of(request.auth) == Scope.WRITE


class MayAct(BasePermission):
    """The user has the permission of the admin that the endpoint's `acts` name for the method."""

    def has_permission(self, request: Request, view: Any) -> bool:
        act = view.act(request.method)
        if act is None:  # a method that the endpoint lacks: 405 is told later
            return True
        meta = view.model._meta
        self.message = f"You may not {act} any {meta.verbose_name}: ask an administrator for the permission."
        # Who may change may look, as in the admin.
        acts = ("view", "change") if act == "view" else (act,)
        return any(request.user.has_perm(f"{meta.app_label}.{name}_{meta.model_name}") for name in acts)
