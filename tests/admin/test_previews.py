"""Previews of forms say what would be, and hold nothing that a reader enters: an answer may come late."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping
from tests.admin.test_acts import TestBenchmark as OfBenchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

PREVIEWS = ("benchmark_preview", "index_grid_preview", "dataset_preview", "run_import_preview")
INPUT = re.compile(r"<(input|select|textarea)\b")
TABLE = b"query_key,query_text,uri,grade\nq1,red,u,1\n"
RUN = b"q1 Q0 a 1 0.5 mine\n"


def answer(client: Client, page: str, **fields: Any) -> str:
    response = client.post(reverse(f"admin:{page}"), fields)
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.parametrize("page", PREVIEWS)
def test_no_preview_holds_an_input(admin_client: Client, library: Mapping, page: str) -> None:
    """Of an empty form, of a right one and of a wrong one."""
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]}, name="judged")
    right, wrong = {
        "benchmark_preview": ({"mapping": library.pk, **OfBenchmark.FIELDS}, {"top_k_values": "many"}),
        "index_grid_preview": (
            {"collection": library.collection.pk, "strategies": "flat\nlod_embed", "encoders": "keyword:apple"},
            {"strategies": "flat(many"},
        ),
        "dataset_preview": ({"file": ("a.csv", TABLE)}, {"columns": "many"}),
        "run_import_preview": ({"dataset": dataset.pk, "file": ("a.run", RUN)}, {"k": "many", "version": "x"}),
    }[page]
    for fields in ({}, right, right | wrong):
        files = {name: SimpleUploadedFile(*given) for name, given in fields.items() if isinstance(given, tuple)}
        shown = answer(admin_client, page, **fields | files)
        assert not INPUT.search(shown)
        assert not fields or ("bb-note-bad" in shown) == ("many" in str(fields))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"top_k_values": "many"}, "Top k: “many” is not a whole number"),
        ({"weights": "a:b"}, "Weights: “a:b” is not a pair of numbers"),
        ({"primary_k": "ten"}, "Primary k: Enter a whole number."),
        ({"seed": "dice"}, "Seed: Enter a whole number."),
        ({"mapping": "no id"}, "Mapping: "),
    ],
)
def test_what_cannot_be_read_is_said_in_place_of_the_runs(
    admin_client: Client, library: Mapping, changes: dict[str, str], said: str
) -> None:
    fields = {"mapping": library.pk, **OfBenchmark.FIELDS, **changes}
    shown = answer(admin_client, "benchmark_preview", **fields)
    assert said in shown
    assert " runs</strong>" not in shown


def test_what_is_not_named_yet_is_no_fault(admin_client: Client, library: Mapping) -> None:
    shown = answer(admin_client, "benchmark_preview", **{"mapping": library.pk, **OfBenchmark.FIELDS, "name": ""})
    assert "8 runs</strong>" in shown
    assert "error_name" not in shown, "what stands there stays"
    assert "Choose a mapping, and" in answer(admin_client, "benchmark_preview", **OfBenchmark.FIELDS)


def test_choices_follow_the_field_that_decides_them(
    client_of_ada: Client, ada: User, make_staff: Any, library: Mapping
) -> None:
    indexes = reverse("admin:benchmark_choices")
    assert 'value="keywords"' in client_of_ada.get(indexes, {"mapping": library.pk}).content.decode()
    for nothing in ({}, {"mapping": "x"}):
        assert "keywords" not in client_of_ada.get(indexes, nothing).content.decode()
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]}, name="judged")
    stub = make_collection("ids")
    type(stub).objects.update(kind="external")
    theirs = make_benchmark(make_mapping(dataset, stub, name="runs"), [0.5], name="of grace", owner=make_staff("grace"))
    runs = reverse("admin:run_import_choices")
    shown = client_of_ada.get(runs, {"dataset": dataset.pk}).content.decode()
    assert "judged v1" in shown
    assert "of grace" not in shown
    Benchmark.objects.filter(pk=theirs.pk).update(owner=ada)
    assert "of grace" in client_of_ada.get(runs, {"dataset": dataset.pk}).content.decode()
