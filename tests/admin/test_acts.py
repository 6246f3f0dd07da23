"""Resolving, building, benchmarking by buttons: what a click brings about, and what the page says."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark, QueryResult, Run
from apps.retrieval.models import Index
from benchbench.site.panels import build_list_url, change_url
from tests.factories import make_collection, make_dataset, make_mapping
from tests.rankings import change_rankings
from tests.site import BENCHMARK_FORM, messages_of, press
from tests.staff import MakeStaff


@pytest.fixture
def unresolved(db: None) -> Mapping:
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1), ({"document_id": "gone"}, 2)]})
    collection = make_collection("library", [{"title": "Pears"}])
    return make_mapping(dataset, collection, status="pending", dataset_version=None)


def test_small_mapping_resolves_immediately_and_shows_unresolved_judgments(client_of_ada: Client, ada: User) -> None:
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1), ({"document_id": "gone"}, 2)]})
    collection = make_collection("library", [{"title": "Pears"}])
    response = client_of_ada.post(
        reverse("admin:mappings_mapping_add"), {"dataset": dataset.pk, "collection": collection.pk}, follow=True
    )
    mapping = Mapping.objects.get()
    assert (mapping.owner, mapping.status) == (ada, Mapping.Status.PARTIAL)
    assert "Judgments without a document count as not found" in messages_of(response)
    page = response.content.decode()
    assert page.count("1 of 2 judgments") == 1
    assert "gone" in page
    assert "No document has the document id" in page


def test_a_pair_is_mapped_once(client_of_ada: Client, unresolved: Mapping) -> None:
    fields = {"dataset": unresolved.dataset_id, "collection": unresolved.collection_id}
    response = client_of_ada.post(reverse("admin:mappings_mapping_add"), fields)
    assert "already mapped" in str(response.context["form"].errors)
    assert Mapping.objects.count() == 1


def test_datasets_of_other_owners_cannot_be_mapped(
    client_of_ada: Client, make_staff: MakeStaff, unresolved: Mapping
) -> None:
    dataset = unresolved.dataset
    unresolved.delete()
    dataset.owner = make_staff("grace")
    dataset.save()
    fields = {"dataset": dataset.pk, "collection": unresolved.collection_id}
    response = client_of_ada.post(reverse("admin:mappings_mapping_add"), fields)
    assert "dataset" in response.context["form"].errors
    assert not Mapping.objects.exists()


def test_resolving_by_button(client_of_ada: Client, unresolved: Mapping) -> None:
    assert "Resolve" in client_of_ada.get(change_url(unresolved)).content.decode()
    response = press(client_of_ada, unresolved, "resolve_selected")
    unresolved.refresh_from_db()
    assert unresolved.status == Mapping.Status.PARTIAL
    assert response.redirect_chain[-1][0] == change_url(unresolved)
    assert "1 of 2 judgments" in messages_of(response)
    assert "Judgments without a document count as not found" in messages_of(response)


def test_a_link_never_acts(client_of_ada: Client, unresolved: Mapping) -> None:
    query = {"action": "resolve_selected", "_selected_action": str(unresolved.pk)}
    client_of_ada.get(build_list_url(Mapping), query)
    unresolved.refresh_from_db()
    assert unresolved.status == Mapping.Status.PENDING


@pytest.mark.parametrize("reason", ["view only", "somebody else's"])
def test_acting_needs_permission_and_sight(
    client: Client, make_staff: MakeStaff, unresolved: Mapping, reason: str
) -> None:
    if reason == "view only":
        client.force_login(make_staff("viewer", may=("view",)))
        assert "resolve_selected" not in client.get(change_url(unresolved)).content.decode()
    else:
        unresolved.owner = make_staff("grace")
        unresolved.save()
        client.force_login(make_staff("ada"))
    press(client, unresolved, "resolve_selected", next="")
    unresolved.refresh_from_db()
    assert unresolved.status == Mapping.Status.PENDING


def test_building_is_cancelled_by_button(transactional_db: None, admin_client: Client) -> None:
    collection = make_collection("library", [{"title": "apple"}])
    fields = {"collection": collection.pk, "name": "words", "lexical": "on"}
    admin_client.post(reverse("admin:retrieval_index_add"), fields)
    press(admin_client, Index.objects.get(), "cancel_selected")
    assert Index.objects.get().status == Index.Status.CANCELLED
    assert "only an index that is being built" in messages_of(
        press(admin_client, Index.objects.get(), "cancel_selected")
    )
    press(admin_client, Index.objects.get(), "build_selected")
    wait(Operation.objects.get(status="pending"))
    assert Index.objects.get().status == Index.Status.READY


def test_finished_operation_refreshes_its_page(transactional_db: None, admin_client: Client) -> None:
    collection = make_collection("library", [{"title": "apple"}])
    admin_client.post(reverse("admin:retrieval_index_add"), {"collection": collection.pk, "name": "w", "lexical": "on"})
    operation = Operation.objects.get()
    url = reverse("admin:operation_progress", args=[operation.pk])
    assert "<progress" in admin_client.get(url).content.decode()
    wait(operation)
    assert admin_client.get(url)["HX-Refresh"] == "true"


class TestBenchmark:
    def post(
        self, client: Client, library: Mapping, page: str = "admin:benchmarks_benchmark_add", **changes: Any
    ) -> Any:
        return client.post(reverse(page), {"mapping": library.pk, **BENCHMARK_FORM, **changes}, follow=True)

    def test_the_preview_counts_the_runs(self, admin_client: Client, library: Mapping) -> None:
        page = self.post(admin_client, library, "admin:benchmark_preview").content.decode()
        assert "8 runs" in page
        assert "instead of" in page
        assert "dense · top 10 · ≥ 0.5" in page
        assert not Benchmark.objects.exists()
        isolated = self.post(admin_client, library, "admin:benchmark_preview", execution="isolated").content.decode()
        assert "8 runs" in isolated
        assert "instead of" not in isolated, "it shares nothing"
        assert ("at least" in isolated, "at least" in page) == (True, False)

    @pytest.mark.parametrize(
        ("changes", "field", "message"),
        [
            ({"top_k_values": "5"}, "top_k_values", "less than the greatest k"),
            ({"top_k_values": "many"}, "top_k_values", "not a whole number"),
            ({"score_thresholds": "none, 2"}, "score_thresholds", "from 0 to 1"),
            ({"primary_k": "0"}, "primary_k", "greater than or equal to 1"),
            ({"search_modes": []}, "search_modes", "required"),
            ({"measures": "RR, nonsense@5"}, "measures", "of the library ir_measures, such as ERR@20"),
        ],
    )
    def test_preview_and_form_show_errors_at_their_field(
        self, admin_client: Client, library: Mapping, changes: dict[str, Any], field: str, message: str
    ) -> None:
        preview = self.post(admin_client, library, "admin:benchmark_preview", **changes).content.decode()
        after = preview.split(f'id="error_{field}"')[1].split("</div>")[0]
        assert message in after
        assert f"{field}: " not in after, "the label of the field says that"
        assert "null" not in after
        response = self.post(admin_client, library, **changes)
        assert message in str(response.context["form"].errors[field])
        assert not Benchmark.objects.exists()

    def test_it_offers_resolved_mappings_and_their_indexes(self, admin_client: Client, library: Mapping) -> None:
        pending = make_mapping(make_dataset(name="other"), library.collection, name="pending one", status="pending")
        url = reverse("admin:benchmarks_benchmark_add")
        page = admin_client.get(url, {"mapping": library.pk}).content.decode()
        assert pending.name not in page
        assert 'value="keywords"' in page

    def test_hidden_indexes_are_neither_offered_nor_searched(
        self, client_of_ada: Client, make_staff: MakeStaff, library: Mapping
    ) -> None:
        hidden = Index.objects.get()
        hidden.pk, hidden.name, hidden.owner, hidden.ready_at = uuid4(), "not to be told", make_staff("grace"), now()
        hidden.save(force_insert=True)
        form = client_of_ada.get(reverse("admin:benchmarks_benchmark_add"), {"mapping": library.pk}).content.decode()
        preview = self.post(client_of_ada, library, "admin:benchmark_preview", indexes=[]).content.decode()
        guessed = self.post(client_of_ada, library, "admin:benchmark_preview", indexes=[hidden.name]).content.decode()
        assert "not to be told" not in form + preview
        assert "is not one of the available choices" in guessed
        self.post(client_of_ada, library, indexes=[])
        assert set(Run.objects.values_list("index__name", flat=True)) == {"keywords"}

    def test_it_is_made_started_watched_and_cancelled(self, admin_client: Client, library: Mapping) -> None:
        response = self.post(admin_client, library, start="1", priority="high")
        benchmark = Benchmark.objects.get()
        assert benchmark.status == "running"
        assert benchmark.operation.priority == "high"
        assert benchmark.seed == 7
        assert response.redirect_chain[-1][0] == reverse("admin:benchmark_results", args=[benchmark.pk])
        page = response.content.decode()
        assert str(benchmark.operation_id) in page
        assert "cancel_selected" in page
        press(admin_client, benchmark, "cancel_selected")
        benchmark.refresh_from_db()
        assert benchmark.status == "cancelled"
        press(admin_client, benchmark, "start_selected")
        wait(Operation.objects.get(kind="benchmark", status="pending"))
        benchmark.refresh_from_db()
        assert benchmark.status == "completed"
        assert "Every run" in messages_of(press(admin_client, benchmark, "start_selected"))

    def test_exclusions_can_be_chosen_and_are_explained(self, admin_client: Client, library: Mapping) -> None:
        self.post(admin_client, library, unresolved="drop", empty_queries="skip")
        benchmark = Benchmark.objects.get()
        assert (benchmark.unresolved, benchmark.empty_queries) == ("drop", "skip")
        page = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
        assert "unresolved judgments, queries without a relevant judgment" in page
        assert "in the collection is left out." in page

    def test_create_only_waits_for_start(self, admin_client: Client, library: Mapping) -> None:
        response = self.post(admin_client, library)
        assert Benchmark.objects.get().status == "pending"
        assert "start_selected" in response.content.decode()

    def test_failed_queries_can_be_retried(self, admin_client: Client, library: Mapping) -> None:
        self.post(admin_client, library, start="1")
        benchmark = Benchmark.objects.get()
        wait(Operation.objects.get(kind="benchmark"))
        change_rankings(
            QueryResult.objects.filter(run=benchmark.runs.get(run_order=1))[:1], error="The index was away."
        )
        benchmark.runs.filter(run_order=1).update(failed_queries=1)
        assert "retry_selected" in admin_client.get(change_url(benchmark)).content.decode()
        press(admin_client, benchmark, "retry_selected")
        wait(Operation.objects.get(kind="benchmark", status="pending"))
        assert set(benchmark.runs.values_list("status", flat=True)) == {Run.Status.COMPLETED}
        assert not QueryResult.objects.filter(run__benchmark=benchmark).exclude(error="").exists()


def test_an_operation_is_cancelled_by_button_once(transactional_db: None, admin_client: Client) -> None:
    collection = make_collection("library", [{"title": "apple"}])
    admin_client.post(reverse("admin:retrieval_index_add"), {"collection": collection.pk, "name": "w", "lexical": "on"})
    operation = Operation.objects.get()
    assert "cancel_selected" in admin_client.get(change_url(operation)).content.decode()
    assert "Cancelled “Index: " in messages_of(press(admin_client, operation, "cancel_selected"))
    operation.refresh_from_db()
    assert operation.status == "cancelled"
    assert "has already ended" in messages_of(press(admin_client, operation, "cancel_selected"))
