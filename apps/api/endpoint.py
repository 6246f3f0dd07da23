"""The base of every endpoint."""

from typing import ClassVar

from django.db.models import Model
from rest_framework.permissions import SAFE_METHODS
from rest_framework.views import APIView


class Endpoint(APIView):
    """An address and what can be asked of it: one method of the class for each method of HTTP.

    `acts` says for each method which permission of the admin on `model` it needs: view, add, change or delete.
    `throttles` names the rate that a method counts against where it is not read or write.
    """

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    model: ClassVar[type[Model]]
    acts: ClassVar[dict[str, str]] = {}
    throttles: ClassVar[dict[str, str]] = {}

    def act(self, method: str) -> str | None:
        return self.acts.get("GET" if method == "HEAD" else method)

    def throttle_scope(self, method: str) -> str:
        return self.throttles.get(method, "read" if method in SAFE_METHODS else "write")
