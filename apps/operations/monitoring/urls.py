"""Addresses for those who watch over a site."""

from django.urls import path

from apps.operations.monitoring.views import healthz, metrics, readyz

urlpatterns = [path("healthz", healthz), path("readyz", readyz), path("metrics", metrics)]
