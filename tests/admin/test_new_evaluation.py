"""New evaluation: from documents and queries to a benchmark that starts when its index is ready."""

import html
import json
import re
import sys
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.execution import preparing
from apps.mappings.models import Mapping
from apps.operations.ending import sweep
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.records.models import Benchmark, Preparation
from apps.retrieval.models import Index
from tests.library import ENCODER, FRUITS
from tests.staff import MakeStaff

FORM = "admin:new_evaluation"
CORPUS = "\n".join(json.dumps({"_id": f"d{n}", "title": "", "text": fruit}) for n, fruit in enumerate(FRUITS))
QUERIES = "query_key,query_text,document_id,grade\n" + "".join(
    f"q{n},{fruit},d{n},1\n" for n, fruit in enumerate(FRUITS)
)


def send(client: Client, corpus: str = CORPUS, queries: str = QUERIES, name: str = "fruit.jsonl", **fields: Any) -> Any:
    texts = {"corpus": (name, corpus), "queries": ("asked.csv", queries)}
    files = {field: SimpleUploadedFile(name, text.encode()) for field, (name, text) in texts.items() if text}
    return client.post(reverse(FORM), files | {"question": "modes", "encoder": ENCODER} | fields)


@pytest.fixture
def staff(transactional_db: None, admin_client: Client) -> Client:
    return admin_client


def test_documents_keep_the_name_of_their_file(staff: Client) -> None:
    send(staff, name="corpus.jsonl")
    assert Collection.objects.get().name == "corpus"


def test_notes_stay_until_the_benchmark_starts(staff: Client) -> None:
    table = "id,text,body_html\nd1,Pear,A longer text of the pear\nd2,Plum,A longer text of the plum\n"
    files = {"corpus": SimpleUploadedFile("shop.csv", table.encode())}
    judged = SimpleUploadedFile("judged.csv", b"query,document,grade\npear,d1,1\n")
    staff.post(reverse(FORM), files | {"queries": judged, "question": "modes", "encoder": ENCODER})
    page, note = reverse("admin:evaluation", args=[Preparation.objects.get().pk]), "More is in “body_html” than in the"
    assert note in staff.get(page).content.decode()
    wait(Operation.objects.get())
    assert note in staff.get(staff.get(page).url).content.decode()
    assert note not in staff.get(staff.get(page).url).content.decode()


def test_two_files_lead_to_a_benchmark(staff: Client, django_assert_max_num_queries: Any) -> None:
    response = send(staff)
    lead = Operation.objects.get()
    page = reverse("admin:evaluation", args=[Preparation.objects.get().pk])
    assert response.url == page
    with django_assert_max_num_queries(25):
        displayed = staff.get(page).content.decode()
    for text in (">fruit</a>", "10 documents", "10 queries", "10 of 10 judgments have a document", "<progress"):
        assert text in displayed
    assert "bb-status-queued" in displayed
    assert not Benchmark.objects.exists()
    wait(lead)
    benchmark = Benchmark.objects.get()
    assert (benchmark.name, benchmark.status) == ("asked: Dense, lexical or both?", "running")
    assert benchmark.owner == lead.started_by
    results = reverse("admin:benchmark_results", args=[benchmark.pk])
    assert staff.get(page).url == results
    assert staff.get(page, headers={"HX-Request": "true"})["HX-Redirect"] == results
    wait(Operation.objects.get(kind="benchmark"))
    benchmark.refresh_from_db()
    assert benchmark.status == "completed"

    again = send(staff, question="reranking")
    assert again.url == reverse("admin:benchmark_results", args=[Benchmark.objects.first().pk]), "all was ready"
    assert [model.objects.count() for model in (Collection, Dataset, Mapping, Index)] == [1, 1, 1, 1]


def test_question_about_strategies_builds_an_index_each(staff: Client) -> None:
    send(staff, question="strategy")
    first, second = Operation.objects.all()
    wait(first)
    assert not Benchmark.objects.exists()
    wait(second)
    assert {run.index.strategy for run in Benchmark.objects.get().runs.all() if run.index} == {"flat", "lod_embed"}


def test_imported_rows_stay_when_a_later_step_fails(staff: Client) -> None:
    wrong = send(staff, corpus="no json")
    assert "corpus" in wrong.context["form"].errors
    dataset = Dataset.objects.get()
    assert wrong.context["form"]["dataset"].value() == str(dataset.pk)
    assert f"{dataset}</a> exists and stays." in wrong.content.decode()
    lost = send(staff, queries="", dataset=dataset.pk, corpus=CORPUS.replace('"d', '"x'))
    assert "None of the 10 judgments" in lost.content.decode()
    assert f"{Mapping.objects.get()}</a> exists and stays." in lost.content.decode()
    assert not Index.objects.exists()


def test_documents_have_the_chosen_language(staff: Client) -> None:
    send(staff, language="german")
    wait(Operation.objects.get())
    german = Collection.objects.get()
    words = Index.objects.get().lexical_index
    assert words is not None
    assert (german.language, words.parameters["analyzer"]["language"]) == ("german", "german")
    send(staff)
    assert Collection.objects.count() == 1, "of any language, if none is chosen"
    send(staff, language="french")
    assert set(Collection.objects.values_list("language", flat=True)) == {"german", "french"}
    both = send(staff, corpus="", collection=german.pk, language="french").context["form"]
    assert both.errors == {"language": ["Leave this empty: the chosen collection has its language."]}


def test_a_language_goes_with_its_file(staff: Client) -> None:
    lost = send(staff, corpus=CORPUS.replace('"d', '"x'), language="german").context["form"]
    assert (lost["collection"].value(), lost["language"].value()) == (str(Collection.objects.get().pk), "")


def test_failed_build_is_shown_and_tried_again(staff: Client, make_staff: MakeStaff) -> None:
    send(staff)
    page = reverse("admin:evaluation", args=[Preparation.objects.get().pk])
    Operation.objects.update(status="failed", error="The model is away.")
    Index.objects.update(status="failed")
    text = staff.get(page).content.decode()
    assert "The model is away." in text
    assert "Try again" in text
    second = Client()
    grace = make_staff("grace")
    grace.user_permissions.add(*Permission.objects.filter(codename__startswith="view_all"))
    second.force_login(grace)
    assert second.get(page).status_code == 403
    again = re.search(r'href="([^"]+evaluate/\?[^"]+)"', text)
    assert again
    filled = staff.get(html.unescape(again[1])).context["form"]
    fields = {name: filled[name].value() for name in ("collection", "dataset", "question", "encoder")}
    page = staff.post(reverse(FORM), fields).url
    wait(Operation.objects.get(status="pending"))
    assert staff.get(page).url == reverse("admin:benchmark_results", args=[Benchmark.objects.get().pk])


@pytest.mark.parametrize("point", ["_start", "_is_ready"])
def test_sweep_starts_once_what_a_killed_worker_left(staff: Client, monkeypatch: Any, point: str) -> None:
    send(staff)
    lead = Operation.objects.get()
    with monkeypatch.context() as patch:
        patch.setattr(preparing, point, lambda *_: sys.exit())
        with pytest.raises(SystemExit):
            wait(lead)
    lead.refresh_from_db()
    assert lead.is_active
    assert not Benchmark.objects.exists()
    sweep()
    sweep()
    lead.refresh_from_db()
    assert lead.status == "completed"
    with transaction.atomic():
        preparing.proceed(lead)
    assert Benchmark.objects.count() == 1


def test_unexpected_error_leaves_the_index(staff: Client, monkeypatch: Any) -> None:
    send(staff)
    lead = Operation.objects.get()
    monkeypatch.setattr(preparing, "launch", lambda *_, **__: 1 / 0)
    wait(lead)
    assert Index.objects.get().status == "ready"
    assert not Benchmark.objects.exists()
    assert (
        "ZeroDivisionError"
        in staff.get(reverse("admin:evaluation", args=[Preparation.objects.get().pk])).content.decode()
    )


def test_refused_start_leaves_no_benchmark(staff: Client, settings: Any) -> None:
    send(staff)
    wait(Operation.objects.get())
    settings.BENCHMARK_MAX_RUNNING_PER_USER = 1
    refused = send(staff, question="reranking")
    assert "a user may have at most 1" in refused.content.decode()
    assert Benchmark.objects.count() == 1


def test_second_tab_starts_no_second_benchmark(staff: Client) -> None:
    first = send(staff)
    chosen = {"collection": Collection.objects.get().pk, "dataset": Dataset.objects.get().pk}
    assert send(staff, corpus="", queries="", **chosen).url == first.url
    wait(Operation.objects.get())
    assert Benchmark.objects.count() == 1


def test_second_evaluation_waits_for_the_same_index(staff: Client) -> None:
    send(staff)
    collection = Collection.objects.get()
    chosen = {"corpus": "", "collection": collection.pk}
    second = send(staff, queries=QUERIES.replace("q1,", "q01,"), **chosen)
    again = send(staff, queries="", dataset=Dataset.objects.earliest("created_at").pk, question="reranking", **chosen)
    build = Operation.objects.get()
    pages = [reverse("admin:evaluation", args=[row.pk]) for row in Preparation.objects.order_by("created_at")]
    assert [second.url, again.url] == pages[1:]
    wait(build)
    names = set(Benchmark.objects.values_list("name", flat=True))
    assert len(names) == 3
    assert [staff.get(page).status_code for page in pages] == [302, 302, 302]


def test_benchmark_belongs_to_who_asked_for_it(staff: Client, make_staff: MakeStaff, admin_user: User) -> None:
    send(staff)
    grace = make_staff("grace")
    Operation.objects.update(started_by=grace)  # she had started the build before
    lead = Operation.objects.get()
    page = reverse("admin:evaluation", args=[Preparation.objects.get().pk])
    assert staff.get(page).status_code == 200
    wait(lead)
    assert Benchmark.objects.get().owner == admin_user
    assert Operation.objects.get(kind="benchmark").started_by == admin_user


def test_deleted_parts_end_the_preparation(staff: Client) -> None:
    send(staff)
    lead = Operation.objects.get()
    page = reverse("admin:evaluation", args=[Preparation.objects.get().pk])
    wait(lead)
    wait(Operation.objects.get(kind="benchmark"))
    Benchmark.objects.all().delete()
    lead.refresh_from_db()
    with transaction.atomic():
        preparing.proceed(lead)
    assert not Benchmark.objects.exists(), "a deleted benchmark does not start again"
    assert staff.get(page).status_code == 404


def test_changed_documents_are_shown_as_the_error(staff: Client) -> None:
    send(staff)
    Collection.objects.update(fingerprint="changed")
    lead = Operation.objects.get()
    wait(lead)
    page = staff.get(reverse("admin:evaluation", args=[Preparation.objects.get().pk])).content.decode()
    assert not Benchmark.objects.exists()
    assert "A step failed" in page


def test_update_keeps_what_waits(staff: Client, admin_user: User) -> None:
    send(staff)
    waiting = Preparation.objects.get()
    plan = {"question": "modes", "mapping": str(waiting.mapping_id), "indexes": [str(waiting.index_ids[0])]}
    Operation.objects.update(parameters={"preparation": plan | {"by": admin_user.pk}})
    waiting.delete()
    import_module("apps.records.migrations.0015_preparations").copy_waiting(apps, None)
    wait(Operation.objects.get())
    assert Benchmark.objects.get().owner == admin_user
