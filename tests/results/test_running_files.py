"""`run_benchmark --queries FILE`: nothing is stored unless the benchmark starts, and a changed file runs as well."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.models import Dataset, DatasetVersion
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark
from apps.results.management import running
from apps.retrieval.indexing import build_index, create_index
from tests.commands import output_of
from tests.kept import made_once


@pytest.fixture
def odoo(transactional_db: None) -> None:
    make_odoo()


@made_once
def make_odoo() -> Collection:
    collection = create_collection("odoo")
    import_documents(collection, [DocumentRecord(name, name, f"{name} of an invoice") for name in ("tax", "dock")])
    wait(build_index(create_index(collection, name="words")))
    return collection


def write(path: Path, *modules: str, **fields: Any) -> Path:
    queries = [
        {"query_key": str(number), "query_text": "invoice", "relevant_docs": [{"doc_ref": {"document_id": module}}]}
        for number, module in enumerate(modules)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"queries": queries, "metadata": fields}))
    return path


def run(path: Path, *options: str) -> str:
    return output_of("run_benchmark", "--queries", path, "--collection", "odoo", "--wait", *options)


def list_versions() -> list[tuple[str, int]]:
    return list(DatasetVersion.objects.order_by("created_at").values_list("dataset__name", "number"))


MISUSES = {
    "no judgment matches": (("txa",), ()),
    "an unknown mode": (("tax",), ("--modes", "sparce")),
    "a measure that does not exist": (("tax",), ("--measures", "nDGC@10")),
    "a long name": (("tax",), ("--name", "x" * 201)),
    "a long tag": (("tax",), ("--tags", "x" * 201)),
    "a priority": (("tax",), ("--priority", "high", "--owner", "mara")),
    "a folder that is a file": (("tax",), ("--output-dir", __file__)),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_run_that_does_not_start_stores_nothing(odoo, tmp_path, misuse, django_user_model):
    django_user_model.objects.create(username="mara", is_staff=True)
    modules, options = MISUSES[misuse]
    with pytest.raises(CommandError):
        run(write(tmp_path / "a.json", *modules), *options)
    assert not any(model.objects.exists() for model in (Dataset, Mapping, Benchmark))
    assert Operation.objects.count() == 1  # of the index
    run(write(tmp_path / "a.json", "tax"))
    assert list_versions() == [("a", 1)]


def test_no_match_names_the_first_reason(odoo, tmp_path):
    with pytest.raises(CommandError, match=r"None of the 1 judgments .* The first: No document has the .* 'txa'\."):
        run(write(tmp_path / "a.json", "txa"))


def test_a_changed_file_becomes_the_next_version(odoo, tmp_path):
    path = write(tmp_path / "a.json", "tax", version="1.0")
    run(path)
    run(path)
    assert list_versions() == [("a", 1)]
    run(write(path, "tax", "dock", version="1.0"))
    run(write(path, "tax", version="1.0"))  # as at first
    run(write(path, "dock", version="2.0"))
    assert list_versions() == [("a", 1), ("a", 2), ("a", 3)]
    labels = DatasetVersion.objects.order_by("number").values_list("label", flat=True)
    assert (labels[0], labels[2], len({*labels})) == ("1.0", "2.0", 3)
    benchmarks = Benchmark.objects.order_by("created_at")
    assert [one.dataset_version.number for one in benchmarks] == [1, 1, 2, 1, 3]
    assert [one.runs.get().evaluations.get().query_count for one in benchmarks] == [1, 1, 2, 1, 1]


def test_files_of_one_name_are_datasets_of_their_own(odoo, tmp_path):
    run(write(tmp_path / "shop/a.json", "tax"))
    run(write(tmp_path / "bank/a.json", "dock"))
    run(write(tmp_path / "bank/a.json", "dock", "tax"))
    assert list_versions() == [("a", 1), ("a (2)", 1), ("a (2)", 2)]


@pytest.mark.parametrize("served", [True, False])
def test_settings_of_workers_are_named(odoo, tmp_path, monkeypatch, capsys, served):
    monkeypatch.setenv("BENCHBENCH_QUERY_TIMEOUT_MS", "5")
    monkeypatch.setattr(running, "fit_workers", lambda operation: {"worker"} if served else set())
    run(write(tmp_path / "a.json", "tax"))
    message = "A worker does the runs by its own BENCHBENCH_QUERY_TIMEOUT_MS: set it where the worker starts."
    assert (message in capsys.readouterr().err) is served


def test_references_are_read_as_what_matches(odoo, tmp_path):
    run(write(tmp_path / "a.json", "TAX", "./Dock", "gone"))
    mapping = Mapping.objects.get()
    assert (mapping.mapped_count, mapping.total_count) == (2, 3)
    assert "the others were read as ids in another spelling: 2 of 3 match" in mapping.dataset.description
