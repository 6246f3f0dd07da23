from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/rq/", include("django_rq.urls")),
    path("admin/", admin.site.urls),
    path("api/v2/", include("apps.api.urls")),
]
