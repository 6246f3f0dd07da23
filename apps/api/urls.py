"""The addresses of the API, under /api/v2; none ends in a slash."""

from django.urls import path

from apps.api.gates import gate_benchmark, gate_run

app_name = "api"
urlpatterns = [
    path("benchmarks/<uuid:benchmark_id>/gate", gate_benchmark, name="gate_benchmark"),
    path("runs/<uuid:run_id>/gate", gate_run, name="gate_run"),
]
