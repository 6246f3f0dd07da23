"""Log of what requests change, beside what is done on pages: on the history of each row."""

from typing import Any

from django.db.models import Model
from rest_framework.request import Request
from rest_framework.response import Response

from apps.benchmarks.models import Baseline, Benchmark, Run
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.judging.models import Grade, Round
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.retrieval.models import Index
from benchbench.site.history import note, note_deleted

# What the parameters of addresses, and the ids in answers, name.
NAMED: dict[str, type[Model]] = {
    "collection_id": Collection,
    "index_id": Index,
    "dataset_id": Dataset,
    "mapping_id": Mapping,
    "baseline_id": Baseline,
    "benchmark_id": Benchmark,
    "run_id": Run,
    "round_id": Round,
    "operation_id": Operation,
}


def log(request: Request, view: Any, response: Response, parameters: dict[str, Any]) -> None:
    """Write down what a request did, by the first line of its endpoint. Many judgments in one request are one act.

    Grades are not: each has a row of its own, with its judge and its time.
    """
    if view.model is Grade:
        return
    said = f"API: {(getattr(view, request.method.lower()).__doc__ or '').strip().splitlines()[0]}"
    names = [name for name in NAMED if name in parameters]
    if request.method == "DELETE" and names and NAMED[names[-1]] is view.model:
        note_deleted(request.user, view.model, parameters[names[-1]], said)
        return
    keys = {name: parameters[name] for name in names[-1:]}
    if response.status_code == 201 and isinstance(response.data, dict):  # what was made, beside what it belongs to
        names = [name for name, model in NAMED.items() if model is view.model]
        keys |= {name: pk for name in names if (pk := response.data.get(name) or response.data.get("id"))}
    rows: list[Any] = [row for name, pk in keys.items() for row in NAMED[name]._default_manager.filter(pk=pk)]
    subjects = [subject for row in rows if isinstance(row, Operation) and (subject := row.subject)]
    note(request.user, [*rows, *subjects], said)
