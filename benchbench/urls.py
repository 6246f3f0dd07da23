from django.contrib import admin
from django.contrib.admin.views.decorators import staff_member_required
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerView

# Errors of the API are JSON, whoever raises them; those of pages are pages.
handler400 = "apps.api.errors.bad_request"
handler403 = "benchbench.error_pages.forbidden"
handler404 = "benchbench.error_pages.not_found"
handler500 = "apps.api.errors.server_error"
docs = SpectacularSwaggerView.as_view(url_name="api:schema", throttle_classes=[])
urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/rq/", include("django_rq.urls")),
    path("admin/", admin.site.urls),
    path("api/v2/", include("apps.api.urls")),
    path("api/docs/", staff_member_required(docs), name="api_docs"),
]
