"""Acts of people for the races: each is done by a process of its own, as by a web process, and its outcome written."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model
from django.test import override_settings

from apps.collections.importing import import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.editing.drafts import freeze
from apps.datasets.editing.judgments import set_judgment
from apps.datasets.models import Dataset
from apps.datasets.records import JudgmentRecord
from apps.execution.launching import cancel, delete_benchmark, launch, retry
from apps.mappings.creating import delete_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.errors import BenchbenchError
from tests.created import create_benchmark
from tests.library import ENCODER

MATRIX = {"search_modes": ["dense", "hybrid"], "k_values_for_metrics": [10], "top_k_values": [10, 20]}
MOST_TRIES = 4  # benchmarks and indexes of one history: more show no more


def one(model: type[Model], number: int) -> Any:
    """Return a row of those that exist, by a number that chooses it."""
    rows = list(model._default_manager.order_by("created_at"))
    if not rows:
        raise model.DoesNotExist
    return rows[number % len(rows)]


def make(number: int) -> None:
    if (created := Benchmark.objects.count()) < MOST_TRIES:
        create_benchmark(one(Mapping, number), name=f"race {created} {number}", matrix=MATRIX)


def index(number: int) -> None:
    """Cut the documents otherwise, and so into chunks of another set."""
    if (created := Index.objects.count()) < MOST_TRIES:
        cut = {"size": 1000 + number, "title": True}
        build_index(create_index(one(Collection, 0), name=f"race {created}", encoder=ENCODER, chunk_parameters=cut))


def bring(number: int) -> None:
    """Import some documents more, which share no word with a query."""
    record = DocumentRecord(external_id=f"more {number}", title="more", text=f"nothing {number}")
    import_documents(one(Collection, 0), [record], remove_missing=False)


def judge(number: int) -> None:
    judgment = JudgmentRecord(doc_ref={"document_id": f"d{number % 30:03}"}, grade=number % 4)
    set_judgment(one(Dataset, 0), f"q{number % 3:03}", judgment)


def measure_again(number: int) -> None:
    with override_settings(BENCHBENCH_MEASURE_AT_ONCE=10_000 if number % 2 else -1):
        rescore(one(Benchmark, number))


ACTS: dict[str, Callable[[int], Any]] = {
    "make": make,
    "start": lambda number: launch(one(Benchmark, number)),
    "cancel": lambda number: cancel(one(Benchmark, number)),
    "retry": lambda number: retry(one(Benchmark, number)),
    "delete": lambda number: delete_benchmark(one(Benchmark, number)),
    "rescore": measure_again,
    "resolve": lambda number: resolve(one(Mapping, number)),
    "delete mapping": lambda number: delete_mapping(one(Mapping, number)),
    "index": index,
    "build": lambda number: build_index(one(Index, number)),
    "delete index": lambda number: delete_index(one(Index, number)),
    "cancel operation": lambda number: cancel_operation(one(Operation, number)),
    "import": bring,
    "judge": judge,
    "freeze": lambda number: freeze(one(Dataset, 0)),
}


def act(name: str, number: int, answer: Path) -> None:
    """Do an act, and write what came of it: a word, the sentence of a refusal, or a traceback, which is a fault."""
    try:
        ACTS[name](number)
        outcome = "done"
    except BenchbenchError as error:
        outcome = f"refused: {error.message}"
    except ObjectDoesNotExist:
        outcome = "gone"  # a 404
    except Exception:
        outcome = f"fault: {traceback.format_exc()}"
    being_written = answer.with_suffix(".part")
    being_written.write_text(outcome)
    being_written.rename(answer)
