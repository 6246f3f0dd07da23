"""Importing a run in the browser: preview, import, and the pages that show what came of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.benchmarks.models import Benchmark, Run
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from benchbench.site.panels import change_url, changelist_url
from tests.factories import make_benchmark as make_searched
from tests.factories import make_collection, make_dataset, make_mapping

RUN = b"q1 Q0 a 1 0.5 mine\nq1 Q0 <b> 2 0.5 mine\nq9 Q0 a 1 1 mine\n"
PAGE, PREVIEW = "admin:run_import", "admin:run_import_preview"

pytestmark = pytest.mark.django_db


@pytest.fixture
def dataset() -> Dataset:
    return make_dataset({"q1": [({"document_id": "a"}, 1)], "q2": [({"document_id": "b"}, 1)]})


def post(client: Client, page: str, dataset: Dataset, content: bytes = RUN, **fields: Any) -> Any:
    values = {"dataset": dataset.pk, "file": SimpleUploadedFile("mine.run", content), **fields}
    return client.post(reverse(page), values, follow=True)


def test_a_preview_counts_and_keeps_nothing(client_of_ada: Client, dataset: Dataset) -> None:
    page = post(client_of_ada, PREVIEW, dataset).content.decode()
    assert "1 of 2 queries</strong> of questions v1" in page
    assert "2 results, of 2 distinct documents; read as TREC run, which calls itself “mine”" in page
    assert "mine.run lacks, counted as 0: 1." in page
    assert ">Import</button>" in page
    assert not Collection.objects.exists()


def test_ids_that_nothing_knows_are_counted_before_and_after_the_import(
    client_of_ada: Client, dataset: Dataset
) -> None:
    run = b"q1 Q0 a 1 2 mine\nq1 Q0 x 2 1 mine\nq2 Q0 y 1 1 mine\nother Q0 a 1 1 mine\n"
    told = (
        "Queries of mine.run that the dataset does not have, left out: 1 of 3 (other).",
        "Documents of mine.run that no judgment of the dataset names, counted as not relevant: 2 of 3 (x, y).",
    )
    for page in (PREVIEW, PAGE):
        shown = post(client_of_ada, page, dataset, run).content.decode()
        assert [sentence for sentence in told if sentence not in shown] == []
    alien = post(client_of_ada, PREVIEW, dataset, b"q1 Q0 <x> 1 2 mine\n").content.decode()
    assert "None of the documents of mine.run (1: &lt;x&gt;) is named by a judgment of the dataset" in alien


def test_documents_that_are_judged_by_another_key_are_known(client_of_ada: Client) -> None:
    judged = make_dataset({"q1": [({"uri": "file:///a.md"}, 1), ({"file_name": "b.md"}, 0), ({"odd": 1}, 1)]})
    shown = post(client_of_ada, PREVIEW, judged, b"q1 Q0 file:///a.md 1 2 m\nq1 Q0 b.md 2 1 m\n").content.decode()
    assert "no judgment" not in shown


def test_a_preview_says_what_is_wrong_and_offers_no_import(client_of_ada: Client, dataset: Dataset) -> None:
    page = post(client_of_ada, PREVIEW, dataset, b"q1 Q0 a 1 1 t\nq1 Q0 a 2 1 t\n").content.decode()
    assert "mine.run, line 2, ranks the document" in page
    assert ">Import</button>" not in page
    assert "leave the order out" in post(client_of_ada, PREVIEW, dataset, order_by="rank").content.decode()
    assert "Choose a dataset" in client_of_ada.post(reverse(PREVIEW), {"dataset": dataset.pk}).content.decode()


def test_a_run_is_imported_and_further_ones_into_its_benchmark(
    client_of_ada: Client, ada: User, dataset: Dataset
) -> None:
    page = post(client_of_ada, PAGE, dataset, name="Elsewhere", k="1, 10", measures="ERR@10").content.decode()
    benchmark = Benchmark.objects.get()
    assert (benchmark.name, benchmark.owner, benchmark.k_values) == ("Elsewhere", ada, [1, 10])
    assert "Imported mine.run (TREC run): 2 results" in page
    assert "equal scores, ordered by id" in page
    assert f"benchmark={benchmark.pk}" in page
    assert "runs were made elsewhere" in page
    again = post(client_of_ada, PAGE, dataset, benchmark=benchmark.pk)
    assert "has the same rankings as run 1, " in again.content.decode()
    assert ": nothing was imported" in again.content.decode()
    post(client_of_ada, PAGE, dataset, b"q1 Q0 a 1 1 other\n", benchmark=benchmark.pk)
    assert [run.label for run in benchmark.runs.all()] == ["mine", "other"]


def test_queries_without_a_relevant_judgment_may_be_left_out(client_of_ada: Client, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset, empty_queries="skip")
    assert Benchmark.objects.get().empty_queries == "skip"


def test_what_another_owns_takes_no_run(client_of_ada: Client, admin_user: User, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset)
    Benchmark.objects.update(owner=admin_user)
    response = post(client_of_ada, PAGE, dataset, b"q1 Q0 a 1 1 other\n", benchmark=Benchmark.objects.get().pk)
    assert "benchmark" in response.context["form"].errors
    assert Run.objects.count() == 1


def test_it_is_reached_from_the_dataset_and_from_the_benchmarks(client_of_ada: Client, dataset: Dataset) -> None:
    assert f"{reverse(PAGE)}?dataset={dataset.pk}" in client_of_ada.get(change_url(dataset)).content.decode()
    assert "Import a run" in client_of_ada.get(changelist_url(Benchmark)).content.decode()
    asked = client_of_ada.get(reverse(PAGE), {"dataset": dataset.pk}).content.decode()
    assert "questions v1" in asked


def test_every_page_shows_a_run_that_has_no_stages_and_no_times(client_of_ada: Client, dataset: Dataset) -> None:
    post(client_of_ada, PAGE, dataset)
    run = Run.objects.get()
    own = make_searched(make_mapping(dataset, make_collection()), [0.5]).runs.get()
    page = client_of_ada.get(change_url(run)).content.decode()
    assert "mine.run, tagged “mine”" in page
    assert "Not known: the file states rankings, and no times." in page
    assert "No stages are known of this run" in page
    assert "0.00" not in client_of_ada.get(reverse("admin:benchmark_live", args=[run.benchmark_id])).content.decode()
    for result in run.query_results.all():
        page = client_of_ada.get(change_url(result)).content.decode()
        assert "<dt>Time</dt>" not in page
    for name in ("run_coverage", "run_sections", "run_content"):
        assert client_of_ada.get(reverse(f"admin:{name}", args=[run.pk])).status_code == 200
    compared = client_of_ada.get(reverse("admin:run_compare"), {"run": [run.pk, own.pk]}).content.decode()
    assert "External runs, so it is not known what computed them: mine" in compared
    assert "They searched different documents" not in compared
