"""The addresses of the API, under /api/v2: those of all resources. None ends in a slash."""

from importlib import import_module
from pkgutil import iter_modules

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

import benchbench.site.addresses  # noqa: F401 - <id:…>
from apps.api import resources
from apps.api.errors import not_found
from apps.api.resource import Resource

for module in iter_modules(resources.__path__, f"{resources.__name__}."):
    import_module(module.name)

app_name = "api"
urlpatterns = [
    *(address for resource in Resource.kinds for address in resource.list_addresses()),
    path("schema", SpectacularAPIView.as_view(throttle_classes=[]), name="schema"),
    re_path("", not_found),
]
