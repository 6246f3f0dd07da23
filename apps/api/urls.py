"""The addresses of the API, under /api/v2; none ends in a slash."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

import benchbench.site.addresses  # noqa: F401 - <id:…>
from apps.api.errors import unknown
from apps.api.resources import auth, collections, indexes, mappings, operations
from apps.api.resources.benchmarks import acts as benchmark_acts
from apps.api.resources.benchmarks import baselines, benchmarks, external_runs, gates
from apps.api.resources.datasets import datasets, judgments, queries, versions
from apps.api.resources.datasets import exports as dataset_exports
from apps.api.resources.judging import items, llm, rounds, state
from apps.api.resources.results import comparisons, exports, results, run_measures, triage

app_name = "api"
DATASET = "benchmark-datasets/<id:dataset_id>"
QUERY = f"{DATASET}/queries/<int:query_id>"
ROUND = "judging-rounds/<id:round_id>"
MAPPING = f"{DATASET}/mappings/<id:mapping_id>"
urlpatterns = [
    path("auth/token", auth.SignIn.as_view(), name="sign_in"),
    path("auth/token/refresh", auth.Refresh.as_view(), name="refresh"),
    path("auth/token/revoke", auth.SignOut.as_view(), name="sign_out"),
    path("benchmark-datasets", datasets.Datasets.as_view(), name="datasets"),
    path(DATASET, datasets.OneDataset.as_view(), name="dataset"),
    path("benchmark-datasets/formats", dataset_exports.Formats.as_view(), name="dataset_formats"),
    path(f"{DATASET}/export", dataset_exports.DatasetExport.as_view(), name="export_dataset"),
    path(f"{DATASET}/queries", queries.Queries.as_view(), name="queries"),
    path(QUERY, queries.OneQuery.as_view(), name="query"),
    path(f"{QUERY}/judgments", judgments.QueryJudgments.as_view(), name="query_judgments"),
    path(f"{QUERY}/judgments/<int:judgment_id>", judgments.OneJudgment.as_view(), name="judgment"),
    path(f"{DATASET}/judgments", judgments.Judgments.as_view(), name="judgments"),
    path(f"{DATASET}/judgments/bulk", judgments.BulkJudgments.as_view(), name="bulk_judgments"),
    path(f"{DATASET}/versions", versions.Versions.as_view(), name="versions"),
    path(f"{DATASET}/versions/<int:number>", versions.OneVersion.as_view(), name="version"),
    path(f"{DATASET}/versions/<int:number>/difference", versions.VersionDifference.as_view(), name="difference"),
    path(f"{DATASET}/mappings", mappings.Mappings.as_view(), name="mappings"),
    path(MAPPING, mappings.OneMapping.as_view(), name="mapping"),
    path(f"{MAPPING}/resolve", mappings.ResolveMapping.as_view(), name="resolve_mapping"),
    path(f"{MAPPING}/unresolved", mappings.UnresolvedJudgments.as_view(), name="unresolved"),
    path(f"{MAPPING}/check", mappings.CheckMapping.as_view(), name="check_mapping"),
    path("benchmarks", benchmarks.Benchmarks.as_view(), name="benchmarks"),
    path("benchmarks/manifest", benchmark_acts.RunManifest.as_view(), name="run_manifest"),
    path("benchmarks/preview", benchmarks.Preview.as_view(), name="preview"),
    path("benchmarks/<id:benchmark_id>", benchmarks.OneBenchmark.as_view(), name="benchmark"),
    path("benchmarks/<id:benchmark_id>/start", benchmarks.Start.as_view(), name="start_benchmark"),
    path("benchmarks/<id:benchmark_id>/cancel", benchmarks.Cancel.as_view(), name="cancel_benchmark"),
    path("benchmarks/<id:benchmark_id>/retry", benchmarks.Retry.as_view(), name="retry_benchmark"),
    path("benchmarks/<id:benchmark_id>/clone", benchmark_acts.Clone.as_view(), name="clone_benchmark"),
    path("benchmarks/<id:benchmark_id>/measures", benchmark_acts.Measures.as_view(), name="add_measures"),
    path("benchmarks/<id:benchmark_id>/rescore", benchmark_acts.Rescore.as_view(), name="rescore_benchmark"),
    path("benchmarks/<id:benchmark_id>/manifest", benchmark_acts.Manifest.as_view(), name="manifest"),
    path("benchmarks/<id:benchmark_id>/verification", benchmark_acts.Verified.as_view(), name="verification"),
    path("benchmarks/<id:benchmark_id>/results", results.Results.as_view(), name="results"),
    path("benchmarks/<id:benchmark_id>/runs/<id:run_id>", results.OneRun.as_view(), name="run"),
    path("benchmarks/<id:benchmark_id>/runs/<id:run_id>/queries", results.RunQueries.as_view(), name="run_queries"),
    path("benchmarks/<id:benchmark_id>/gate", gates.BenchmarkGate.as_view(), name="gate_benchmark"),
    path("runs/<id:run_id>/gate", gates.RunGate.as_view(), name="gate_run"),
    path("collections", collections.Collections.as_view(), name="collections"),
    path("collections/<id:collection_id>", collections.OneCollection.as_view(), name="collection"),
    path("collections/<id:collection_id>/documents", collections.Documents.as_view(), name="documents"),
    path(
        "collections/<id:collection_id>/documents/<id:document_id>",
        collections.OneDocument.as_view(),
        name="document",
    ),
    path("collections/<id:collection_id>/indexes", indexes.Indexes.as_view(), name="indexes"),
    path("collections/<id:collection_id>/indexes/grid", indexes.IndexGrid.as_view(), name="index_grid"),
    path(
        "collections/<id:collection_id>/indexes/grid/preview",
        indexes.IndexGridPreview.as_view(),
        name="index_grid_preview",
    ),
    path("indexes/options", indexes.Options.as_view(), name="index_options"),
    path("indexes/<id:index_id>", indexes.OneIndex.as_view(), name="index"),
    path("indexes/<id:index_id>/build", indexes.IndexBuild.as_view(), name="build_index"),
    path("operations", operations.Operations.as_view(), name="operations"),
    path("operations/<id:operation_id>", operations.OneOperation.as_view(), name="operation"),
    path("operations/<id:operation_id>/cancel", operations.OperationCancel.as_view(), name="cancel_operation"),
    path(f"{DATASET}/baselines", baselines.Baselines.as_view(), name="baselines"),
    path(f"{DATASET}/baselines/<id:baseline_id>", baselines.OneBaseline.as_view(), name="baseline"),
    path(f"{DATASET}/baselines/<id:baseline_id>/retire", baselines.RetireBaseline.as_view(), name="retire_baseline"),
    path(f"{DATASET}/external-runs", external_runs.ExternalRuns.as_view(), name="external_runs"),
    path("export-formats", exports.Formats.as_view(), name="export_formats"),
    path("benchmarks/<id:benchmark_id>/export", exports.BenchmarkExport.as_view(), name="export_benchmark"),
    path("benchmarks/<id:benchmark_id>/runs/<id:run_id>/export", exports.RunExport.as_view(), name="export_run"),
    path("runs/<id:run_id>/triage", triage.Triage.as_view(), name="triage_run"),
    path("runs/<id:run_id>/triage/documents", triage.LostDocuments.as_view(), name="lost_documents"),
    path("runs/<id:run_id>/coverage", run_measures.Coverage.as_view(), name="run_coverage"),
    path("runs/<id:run_id>/sections", run_measures.Sections.as_view(), name="run_sections"),
    path("runs/<id:run_id>/content", run_measures.Content.as_view(), name="run_content"),
    path("runs/<id:run_id>/slices", triage.Slices.as_view(), name="slice_run"),
    path("comparison", comparisons.Comparison.as_view(), name="comparison"),
    path("comparison/queries", comparisons.ComparisonQueries.as_view(), name="comparison_queries"),
    path("judging-rounds", rounds.Rounds.as_view(), name="rounds"),
    path(ROUND, rounds.OneRound.as_view(), name="round"),
    path(f"{ROUND}/next", items.NextItems.as_view(), name="next_items"),
    path(f"{ROUND}/items/<int:item_id>", items.OneItem.as_view(), name="round_item"),
    path(f"{ROUND}/grades", items.Grades.as_view(), name="grades"),
    path(f"{ROUND}/grades/undo", items.UndoGrades.as_view(), name="undo_grades"),
    path(f"{ROUND}/grades/remove", items.Ungrade.as_view(), name="ungrade"),
    path(f"{ROUND}/adjudications", items.Adjudications.as_view(), name="adjudications"),
    path(f"{ROUND}/adjudications/<int:item_id>", items.OneAdjudication.as_view(), name="one_adjudication"),
    path(f"{ROUND}/state", state.State.as_view(), name="round_state"),
    path(f"{ROUND}/agreement", state.Agreement.as_view(), name="agreement"),
    path(f"{ROUND}/close", rounds.CloseRound.as_view(), name="close_round"),
    path(f"{ROUND}/llm-judges", llm.Judges.as_view(), name="llm_judges"),
    path(f"{ROUND}/llm-judges/preview", llm.Cost.as_view(), name="llm_cost"),
    path(f"{ROUND}/calibration-sample", llm.CalibrationSample.as_view(), name="calibration_sample"),
    path(f"{ROUND}/verdicts", llm.Verdicts.as_view(), name="verdicts"),
    path("schema", SpectacularAPIView.as_view(throttle_classes=[]), name="schema"),
    re_path("", unknown),
]
