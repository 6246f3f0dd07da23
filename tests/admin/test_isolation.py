"""Every address of the admin times everybody who may ask: one that is added is asked for here too."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Permission, User
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import reverse

from apps.benchmarks.models import QueryResult, Run
from apps.datasets.models import Query
from apps.judging.models import RoundItem
from apps.mappings.resolving import resolve
from apps.retrieval.models import ChunkSet, VectorSpace
from benchbench.site.panels import change_url
from tests.admin.conftest import APPS, MakeStaff
from tests.api.test_isolation import world
from tests.factories import add_judgment
from tests.pages import Address, every_address
from tests.rankings import add_ranking

pytestmark = pytest.mark.thorough

# Addresses that answer no other method.
POSTED = {
    *("benchmark_preview", "dataset_preview", "index_grid_preview", "run_import_preview"),
    *("round_decide", "round_exchange", "round_preview", "round_llm_preview"),
}
# What only those may open who may change something, besides Django's pages that add and delete.
ACTS = POSTED | {
    *(
        "new_evaluation",
        "benchmark_choices",
        "benchmark_from_manifest",
        "benchmark_measures",
        "benchmarks_benchmark_import_run",
    ),
    *("dataset_freeze", "query_add", "query_edit", "query_judge", "resolution_repair"),
    *("run_import", "run_import_choices", "index_grid"),
    *("round_judge", "round_grades", "round_adjudicate", "round_close", "round_people", "round_choices"),
    *("round_llm", "round_sample"),
}
FORMATS = {"run_export": "csv-run", "benchmark_export": "json"}
Ask = Callable[[Client], dict[str, Any]]


def ours() -> Iterator[tuple[Address, str]]:
    """Yield the addresses of our models, each with its name in the admin."""
    for address in every_address():
        if address.model and address.model._meta.app_label in APPS:
            yield address, address.name.removeprefix("admin:")


def is_act(name: str) -> bool:
    return name in ACTS or name.endswith(("_add", "_delete"))


@pytest.fixture
def owner(make_staff: MakeStaff) -> User:
    """Somebody who owns one of everything that has an address."""
    user = make_staff("grace")
    world(user)
    run, query = Run.objects.get(), Query.objects.get()
    add_judgment(query, {"document_id": "gone"}, 2)
    resolve(run.benchmark.mapping)
    add_ranking(run, query, [run.benchmark.mapping.collection.documents.get().pk], scores=[1.0])
    ChunkSet.objects.create(collection=run.benchmark.mapping.collection, strategy="flat", fingerprint="f")
    VectorSpace.objects.create(encoder="keyword:a", revision="1", kind="query", dimension=1)
    return user


@pytest.fixture
def ask(owner: User) -> Ask:
    """Ask for every address as somebody, by the method that it answers; return the answers by name."""

    def url(address: Address, name: str) -> str:
        assert address.model
        row: Any = address.model._default_manager.order_by("pk").first()
        values = dict.fromkeys(("object_id", "query_id"), row.pk) | {"format": FORMATS.get(name, "benchbench-json")}
        values["side"] = 0
        values["document_id"] = getattr(row, "document_ids", [0])[0]
        values["item_id"] = RoundItem.objects.get().pk
        return address.url(values.__getitem__)

    def everything(client: Client) -> dict[str, Any]:
        with patch.object(SimpleTemplateResponse, "rendered_content", ""):
            asked = {name: (client.post if name in POSTED else client.get, url(at, name)) for at, name in ours()}
            return {name: method(path) for name, (method, path) in asked.items()}

    return everything


@pytest.mark.parametrize("who", ["anonymous", "no staff"])
def test_non_staff_users_are_sent_to_the_login(client: Client, ask: Ask, who: str) -> None:
    if who == "no staff":
        client.force_login(User.objects.create_user("guest"))
    answers = ask(client)
    assert len(answers) > 90
    login = reverse("admin:login")
    assert {
        name: answer.status_code
        for name, answer in answers.items()
        if answer.get("Location", "")[: len(login)] != login
    } == {}


def test_owner_without_permission_is_refused_everywhere(client: Client, owner: User, ask: Ask) -> None:
    owner.user_permissions.clear()
    client.force_login(owner)
    assert {name: answer.status_code for name, answer in ask(client).items() if answer.status_code != 403} == {}


def test_view_only_owner_is_refused_exactly_the_acts(client: Client, owner: User, ask: Ask) -> None:
    owner.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(owner)
    refused = {name for name, answer in ask(client).items() if answer.status_code == 403}
    assert refused == {name for _, name in ours() if is_act(name)}


def test_rows_of_other_owners_are_not_found(client_of_ada: Client, ask: Ask) -> None:
    answers = ask(client_of_ada)
    rows = {
        name
        for address, name in ours()
        if {"object_id", "query_id"} & set(address.parameters) and address.model is not VectorSpace
    }
    assert {name: answers[name].status_code for name in rows if answers[name].status_code != 404} == {}


def test_a_form_of_another_site_is_accepted_nowhere(owner: User, ask: Ask) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    with patch.object(client, "get", client.post):
        answers = ask(client)
    told = {
        name: (answer.status_code, "Nothing was changed" in answer.content.decode()) for name, answer in answers.items()
    }
    assert {name: one for name, one in told.items() if one != (403, True)} == {}


def test_alternative_spellings_of_an_id_open_the_same_page(client: Client, owner: User) -> None:
    client.force_login(owner)
    result = QueryResult.objects.get()
    for row, other in ((result.run, str(result.run_id).upper()), (result, f"+{result.pk}")):
        (usual,) = client.get(change_url(row)).templates[:1]
        assert client.get(change_url(row).replace(str(row.pk), other)).templates[0].name == usual.name
