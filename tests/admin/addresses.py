"""A small site with a row of everything that has a page, and the paths of its pages."""

from typing import Any

import django_rq
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.test import RequestFactory
from rq.results import Result

from apps.accounts.tokens import issue_token
from apps.records.models import Benchmark, QueryResult, Run
from apps.retrieval.models import Index
from benchbench.site.history import note
from tests.api.worlds import worlds
from tests.factories import ensure_preparation, make_deletion
from tests.pages import Address, addresses

# A scheduler has pages where one was set up; here none is.
NO_ROW = {"django_rq:cron_scheduler_detail", "django_rq:cron_job_detail", "django_rq:scheduler_jobs"}
ALIKE = ("history", "delete")  # Django's own pages, the same for every row


def make_world(owner: User) -> None:
    """Make a small site with a row of everything that has a page, most of it the owner's, and a job on a queue."""
    worlds(owner)
    Group.objects.create(name="team")
    note(owner, Benchmark.objects.all(), "Started.")
    issue_token(owner, name="ci")
    make_deletion(owner)
    job = django_rq.get_queue("default", commit_mode="auto").enqueue("apps.operations.working.work_batch", 0)
    Result.create(job, Result.Type.SUCCESSFUL, ttl=3600, return_value=None)
    django_rq.get_worker("default", name="one").register_birth()


def paths(user: User) -> dict[str, str]:
    """Return by name the path of every page that exists for `user`, filled in with what `make_world` made.

    A page of rows is visited once for every status that they have.
    """
    hits = {}
    for address in addresses():
        if not address.is_full or address.name in NO_ROW or not permitted(address, user):
            continue
        of_row = {"object_id", "query_id", "id"} & set(address.parameters)
        for row in rows_of(address)[: 1 if address.name.endswith(ALIKE) else None] if of_row else [None]:
            values = {parameter: value_of(parameter, row) for parameter in address.parameters}
            for query in queries_of(address.name, row):
                name = " ".join([address.name, *map(str, values.values())]) + query
                hits[name] = address.url(values.__getitem__) + query
    return hits


def permitted(address: Address, user: User) -> bool:
    """Return whether rows of its model are added, or deleted, by hand at all; of any other page nothing is asked."""
    model, act = address.model, address.name.rpartition("_")[2]
    if (
        model is None
        or act not in ("add", "delete")
        or address.name != f"admin:{model._meta.label_lower.replace('.', '_')}_{act}"
    ):
        return True
    request = RequestFactory().get("/")
    request.user = user
    return bool(getattr(admin.site.get_model_admin(model), f"has_{act}_permission")(request))


def rows_of(address: Address) -> list[Model]:
    """Return the rows whose pages are visited: the newest of each status."""
    assert address.model, f"{address.name} is of no model"
    by_status = {getattr(row, "status", ""): row for row in address.model._default_manager.order_by("pk")}
    assert by_status, f"make_world makes no {address.model.__name__}"
    return list(by_status.values())


def value_of(parameter: str, row: Any) -> Any:
    """Return what is used an address for a parameter: add yours."""
    if parameter in ("object_id", "query_id", "id"):
        return row.pk
    job = django_rq.get_queue("default").jobs[-1]  # after those that the worlds queue
    waiting = ensure_preparation().pk
    recognised = {"preparation_id": waiting, "app_label": "benchmarks", "job_id": job.id, "key": "rq:worker:one"}
    return job.results()[0].id if parameter == "result_id" else recognised.get(parameter, 0)


def queries_of(name: str, row: Any) -> list[str]:
    """Return with which query strings a page is visited: without one, unless it shows little then."""
    if name == "admin:run_compare":
        several = max(Benchmark.objects.all(), key=lambda benchmark: benchmark.runs.filter(status="completed").count())
        first, second = several.runs.order_by("run_order")[:2]
        return [f"?benchmark={several.pk}", f"?run={first.pk}&run={second.pk}&measure=RR"]
    if name == "admin:query_judge":
        judged = row.judgments.filter(until=None)[:1]
        ranked = QueryResult.objects.filter(query=row)[:1]
        return [
            "",
            *(f"?judgment={judgment.pk}" for judgment in judged),
            *(f"?result={result.pk}&document={result.document_ids[0]}" for result in ranked),
        ]
    if name == "admin:collection_try":
        ready = Index.objects.filter(collection=row, status=Index.Status.READY)[:1]
        return ["", *(f"?q=apple&index={index.pk}&way=dense&other_way=sparse&top_k=10" for index in ready)]
    if isinstance(row, Run) and name.endswith("change") and row.status == Run.Status.COMPLETED:
        return ["", *(f"?against={run.pk}" for run in row.benchmark.runs.exclude(pk=row.pk)[:1])]
    return [""]


# Addresses that answer no other method.
POSTED = {
    *("benchmark_preview", "dataset_preview", "evaluation_preview", "index_grid_preview", "run_import_preview"),
    *("collection_preview", "evaluation_documents"),
    *("round_decide", "round_exchange", "round_preview", "round_llm_preview"),
}
FORMATS = {"run_export": "csv-run", "benchmark_export": "json"}
