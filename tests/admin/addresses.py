"""Every address of a page, found by asking Django: whoever adds a page has it tried by the tests that visit all."""

from collections.abc import Iterator
from typing import Any

import django_rq
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rq.results import Result

from apps.api.tokens import issue_token
from apps.benchmarks.models import Benchmark, QueryResult, Run
from tests.api.worlds import worlds

Address = tuple[str, list[str], Any]  # the name, the parameters, the model of the admin that it is of
# Addresses that answer otherwise than with a page; a new one is taken for a page until it stands here.
LEAD_ON = {"catch-all", "admin:catch-all", "admin:view_on_site", "admin:benchmarks_benchmark_import_run"}
POSTS = {"admin:logout", "admin:dataset_preview", "admin:run_import_preview", "admin:benchmark_preview"} | {
    f"django_rq:{name}" for name in ("stop_job", "confirm_action", "actions")
}
FRAGMENTS = {"operation_progress", "dataset_shape", "benchmark_live", "benchmark_verdict", "search"} | {
    "run_coverage",
    "run_sections",
    "run_content",
    "run_import_choices",
    "benchmark_choices",
}
FILES = {"dataset_export", "mapping_export", "benchmark_export", "run_export", "benchmark_manifest"} | {
    "autocomplete",
    "jsi18n",
}
NO_PAGES = LEAD_ON | POSTS | {f"admin:{name}" for name in FRAGMENTS | FILES} | {"django_rq:home_json"}
# A scheduler has pages where one was set up; here none is.
NO_ROW = {"django_rq:cron_scheduler_detail", "django_rq:cron_job_detail", "django_rq:scheduler_jobs"}
ALIKE = ("history", "delete")  # Django's own pages, the same for every row


def make_world(owner: User) -> None:
    """Make a small site with a row of everything that has a page, most of it the owner's, and a job on a queue."""
    worlds(owner)
    Group.objects.create(name="team")
    issue_token(owner, name="ci")
    job = django_rq.get_queue("default", commit_mode="auto").enqueue("apps.operations.tasks.work_batch", 0)
    Result.create(job, Result.Type.SUCCESSFUL, ttl=3600, return_value=None)
    django_rq.get_worker("default", name="one").register_birth()


def addresses(resolver: Any = None, space: tuple[str, ...] = (), model: Any = None) -> Iterator[Address]:
    """Yield every address of the site but those of the API."""
    known = {row._meta.label_lower: row for row in apps.get_models()}
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLResolver) and one.namespace != "api":
            label = str(one.pattern).strip("/").replace("/", ".")
            yield from addresses(one, (*space, *filter(None, [one.namespace])), known.get(label))
        elif isinstance(one, URLPattern):
            yield ":".join([*space, one.name or "catch-all"]), list(one.pattern.regex.groupindex), model


def paths(user: User) -> dict[str, str]:
    """Return by name the path of every page that there is for `user`, filled in with what `make_world` made.

    A page of rows is visited once for every status that they have.
    """
    found = {}
    for name, parameters, model in addresses():
        if name in NO_PAGES | NO_ROW or not permitted(name, model, user):
            continue
        of_row = {"object_id", "query_id", "id"} & set(parameters)
        for row in rows_of(model)[: 1 if name.endswith(ALIKE) else None] if of_row else [None]:
            values = {parameter: value_of(parameter, row) for parameter in parameters}
            path = reverse(name, kwargs=values)
            for query in queries_of(name, row):
                found[" ".join([name, *map(str, values.values())]) + query] = path + query
    return found


def permitted(name: str, model: type[Model] | None, user: User) -> bool:
    """Tell whether rows of `model` are added, or deleted, by hand at all; of any other page nothing is asked."""
    act = name.rpartition("_")[2]
    if (
        model is None
        or act not in ("add", "delete")
        or name != f"admin:{model._meta.label_lower.replace('.', '_')}_{act}"
    ):
        return True
    request = RequestFactory().get("/")
    request.user = user
    return bool(getattr(admin.site.get_model_admin(model), f"has_{act}_permission")(request))


def rows_of(model: type[Model]) -> list[Model]:
    """Return the rows whose pages are visited: the newest of each status."""
    by_status = {getattr(row, "status", ""): row for row in model._default_manager.order_by("pk")}
    assert by_status, f"make_world makes no {model.__name__}"
    return list(by_status.values())


def value_of(parameter: str, row: Any) -> Any:
    """Return what stands in an address for a parameter: add yours."""
    if parameter in ("object_id", "query_id", "id"):
        return row.pk
    if parameter == "document_id":
        return row.document_ids[0]
    job = django_rq.get_queue("default").jobs[0]
    known = {"app_label": "benchmarks", "job_id": job.id, "key": "rq:worker:one"}
    return job.results()[0].id if parameter == "result_id" else known.get(parameter, 0)


def queries_of(name: str, row: Any) -> list[str]:
    """Return with which query strings a page is visited: without one, unless it shows little then."""
    if name == "admin:run_compare":
        several = max(Benchmark.objects.all(), key=lambda benchmark: benchmark.runs.filter(status="completed").count())
        first, second = several.runs.order_by("run_order")[:2]
        return [f"?benchmark={several.pk}", f"?run={first.pk}&run={second.pk}&measure=RR"]
    if isinstance(row, QueryResult) and name.endswith("change"):
        return ["", *(f"?against={run.pk}" for run in row.run.benchmark.runs.exclude(pk=row.run_id)[:1])]
    if isinstance(row, Run) and name.endswith("change") and row.status == Run.Status.COMPLETED:
        return ["", *(f"?against={run.pk}" for run in row.benchmark.runs.exclude(pk=row.pk)[:1])]
    return [""]
