"""The addresses of the API, under /api/v2; none ends in a slash."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from apps.api.errors import unknown
from apps.api.resources import auth, benchmarks, collections, datasets, gates

app_name = "api"
urlpatterns = [
    path("auth/token", auth.SignIn.as_view(), name="sign_in"),
    path("auth/token/refresh", auth.Refresh.as_view(), name="refresh"),
    path("auth/token/revoke", auth.SignOut.as_view(), name="sign_out"),
    path("benchmark-datasets", datasets.Datasets.as_view(), name="datasets"),
    path("benchmark-datasets/<uuid:dataset_id>", datasets.OneDataset.as_view(), name="dataset"),
    path("benchmarks", benchmarks.Benchmarks.as_view(), name="benchmarks"),
    path("benchmarks/preview", benchmarks.Preview.as_view(), name="preview"),
    path("benchmarks/<uuid:benchmark_id>", benchmarks.OneBenchmark.as_view(), name="benchmark"),
    path("benchmarks/<uuid:benchmark_id>/start", benchmarks.Start.as_view(), name="start_benchmark"),
    path("benchmarks/<uuid:benchmark_id>/cancel", benchmarks.Cancel.as_view(), name="cancel_benchmark"),
    path("benchmarks/<uuid:benchmark_id>/retry", benchmarks.Retry.as_view(), name="retry_benchmark"),
    path("benchmarks/<uuid:benchmark_id>/gate", gates.BenchmarkGate.as_view(), name="gate_benchmark"),
    path("runs/<uuid:run_id>/gate", gates.RunGate.as_view(), name="gate_run"),
    path("collections", collections.Collections.as_view(), name="collections"),
    path("collections/<uuid:collection_id>", collections.OneCollection.as_view(), name="collection"),
    path("collections/<uuid:collection_id>/documents", collections.Documents.as_view(), name="documents"),
    path(
        "collections/<uuid:collection_id>/documents/<uuid:document_id>",
        collections.OneDocument.as_view(),
        name="document",
    ),
    path("schema", SpectacularAPIView.as_view(throttle_classes=[]), name="schema"),
    re_path("", unknown),
]
