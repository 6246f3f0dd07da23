"""Addresses of the API, with the permission that each method needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import URLPattern, reverse

from apps.api import urls
from apps.api.resource import Operation
from tests.api.callers import ROOT

POSTS_THAT_READ = {
    *("check_mapping", "preview_benchmark", "gate_benchmark", "gate_run", "preview_indexes", "preview_llm_judging")
}
UNKNOWN = UUID("00000000-0000-4000-8000-000000000000")


@dataclass(frozen=True)
class Address:
    """An address of the API, with the parameters that it has and the permission that each method needs."""

    name: str
    parameters: tuple[str, ...]
    acts: dict[str, str]

    def path(self, values: Callable[[str], Any]) -> str:
        complete = reverse(f"api:{self.name}", kwargs={name: values(name) for name in self.parameters})
        return complete.removeprefix(ROOT)


def addresses() -> Iterator[Address]:
    """Yield those that ask who is there."""
    for pattern in urls.urlpatterns:
        view = pattern.callback.cls if hasattr(pattern.callback, "actions") else None
        if view and view.permission_classes:
            acts = {act.method.upper(): act.permission for act in operations(pattern)}
            yield Address(str(pattern.name), tuple(pattern.pattern.converters), acts)


def operations(pattern: URLPattern) -> list[Operation]:
    """Return the operations of an address; none of one that is not a resource's."""
    return [getattr(pattern.callback.cls, name).operation for name in getattr(pattern.callback, "actions", {}).values()]
