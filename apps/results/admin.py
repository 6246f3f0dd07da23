"""Pages that results add to the admin classes of the rooms below."""

from functools import partial

from django.http import HttpRequest

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import Dataset, Query
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.records.models import Benchmark, QueryResult, Run
from apps.results.dataset_page import load_health, load_query_table
from apps.results.exporting import EXPORTERS, build_export
from apps.results.triage.next_steps import list_next_steps
from apps.results.views import comparison, content, disk, results, trying, updating
from benchbench.access import may_change, may_view
from benchbench.site.panels import Exports, Page, add_to


def list_exports(kind: str) -> Exports:
    labels = {name: exporter.title for name, exporter in EXPORTERS.items() if exporter.exports == kind}
    return Exports(labels, build_export)


def show_dataset_steps(request: HttpRequest, dataset: Dataset) -> dict[str, object]:
    may_edit = may_change(dataset, request.user)
    return {"steps": list_next_steps(dataset, request.user, find_draft(dataset), may_edit=may_edit)}


def show_mapping_steps(request: HttpRequest, mapping: Mapping) -> dict[str, object]:
    return show_dataset_steps(request, mapping.dataset) if may_view(mapping.dataset, request.user) else {}


def show_dataset(request: HttpRequest, dataset: Dataset) -> dict[str, object]:
    health = load_health(dataset, request.user)
    content = {"health": health, "query_table": load_query_table(dataset, health)}
    return show_dataset_steps(request, dataset) | content


add_to(
    Dataset,
    pages=(
        Page("<uuid:object_id>/timeline/", results.history_page, "dataset_history"),
        Page("<uuid:object_id>/freeze/", updating.freeze_page, "dataset_freeze"),
        Page("<uuid:object_id>/moved/", updating.moved_page, "dataset_moved"),
        Page("<uuid:object_id>/shape/", results.dataset_shape, "dataset_shape"),
    ),
    context=show_dataset,
)
add_to(Query, pages=(Page("<path:object_id>/change/", content.query_page, "datasets_query_change"),))
add_to(Document, pages=(Page("<path:object_id>/change/", content.document_page, "collections_document_change"),))
add_to(Mapping, context=show_mapping_steps)
add_to(
    Collection,
    pages=(
        Page("<uuid:object_id>/try/", trying.trial_page, "collection_try"),
        Page("<uuid:object_id>/try/<int:side>/", trying.trial_answer, "collection_try_answer"),
    ),
)
add_to(
    Benchmark,
    pages=(
        Page("measures/", results.measures_page, "measures"),
        Page("across/", comparison.across_page, "benchmarks_across"),
        Page("<uuid:object_id>/results/", results.benchmark_page, "benchmark_results"),
        Page("<uuid:object_id>/live/", results.benchmark_live, "benchmark_live"),
        *(
            Page(f"<uuid:object_id>/{page.name}/", partial(results.ladder_page, ladder=page), f"benchmark_{page.name}")
            for page in results.LADDERS
        ),
        Page("<uuid:object_id>/verdict/", comparison.verdict_fragment, "benchmark_verdict"),
        Page("<uuid:object_id>/export/<str:format>/", results.download, "benchmark_export"),
    ),
    exports=list_exports("benchmark"),
)
add_to(
    Run,
    pages=(
        Page("<path:object_id>/change/", results.run_page, "benchmarks_run_change"),
        Page("<uuid:object_id>/side-by-side/", results.side_by_side_page, "run_side_by_side"),
        Page("<uuid:object_id>/coverage/", results.run_coverage, "run_coverage"),
        Page("<uuid:object_id>/sections/", results.run_sections, "run_sections"),
        Page("<uuid:object_id>/content/", results.run_content, "run_content"),
        Page("<uuid:object_id>/export/<str:format>/", results.download, "run_export"),
        Page("compare/", comparison.comparison_page, "run_compare"),
    ),
    exports=list_exports("run"),
)
add_to(
    Operation,
    pages=(
        Page("disk/", disk.disk_page, "disk"),
        Page("engines/try/", trying.engine_trial_page, "engine_try"),
    ),
)
add_to(QueryResult, pages=(Page("<path:object_id>/change/", results.query_page, "benchmarks_queryresult_change"),))
