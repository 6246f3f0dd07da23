"""The command that tries a declaration, and the page of the declared engines."""

import io
import json
import re

import django_rq
import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from apps.engines.asking import ask_all
from apps.engines.models import EngineAnswer
from apps.engines.review import list_samples, review_file
from apps.engines.storing import Question
from apps.operations import queueing
from apps.operations.leasing import claim
from apps.operations.management.commands.worker import Command
from apps.records.models import Benchmark
from benchbench.ir.planning.engine import EngineSetting
from tests.engines.questions import shop
from tests.engines.servers import hits_of, search_server
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.operations.adding import start_adding

pytestmark = pytest.mark.django_db
WAITS = {"waits": "1"}  # of a request that the page repeats
KEY = {"secret": "SHOP_KEY", "headers": {"X-Key": "{secret}"}}


def run(*arguments):
    out = io.StringIO()
    call_command("try_engine", *arguments, stdout=out)
    return out.getvalue()


class TestCommand:
    @pytest.fixture(autouse=True)
    def secret(self, monkeypatch):
        monkeypatch.setenv("SHOP_KEY", "s3cret-of-the-shop")

    @pytest.fixture
    def server(self, declare):
        with search_server(hits_of) as server:
            parameters = {"boost": {"default": 1}}
            query = {"q": "{query}", "size": "{size}", "boost": "{boost}"}
            declare({"shop": shop(server.url, parameters=parameters, query=query, **KEY)})
            yield server

    def test_it_prints_request_and_hits_without_the_secret(self, server):
        printed = run("shop", "boots", "--param", "boost=2", "--depth", "1")
        assert f"GET {server.url}?q=boots&size=1&boost=2\nX-Key: …\n" in printed
        assert "Hits: 1 of 2\n   1  boots-1  1  Title 1\n" in printed
        assert "s3cret" not in printed
        facts = json.loads(run("shop", "boots", "--json", "--raw"))
        assert [hit["id"] for hit in facts["hits"]] == ["boots-1", "boots-2"]
        assert json.loads(facts["answer"])["found"] == 2
        assert not EngineAnswer.objects.exists()

    def test_it_shows_where_a_path_failed(self, server, declare):
        declare({"shop": shop(server.url, answer={"hits": "hits", "id": "document.id"})})
        out = io.StringIO()
        with pytest.raises(CommandError, match=r"The path id \(document.id\) of hit 1 must find"):
            call_command("try_engine", "shop", "boots", stdout=out)
        assert 'The path that failed: document.id\nIt looked at:\n{\n  "id": "boots-1",' in out.getvalue()

    def test_documents_that_an_engine_repeats_are_counted(self, declare):
        hits = [{"id": "a", "score": 1, "title": "A"}] * 3
        with search_server(lambda query: (200, {"found": 3, "hits": hits})) as server:
            declare({"shop": shop(server.url)})
            assert "\n2 hits of a document listed before: a benchmark counts its first alone.\n" in run("shop", "boots")

    def test_wrong_words_are_sentences(self, server):
        with pytest.raises(CommandError, match="choose one of shop"):
            run("store", "boots")
        with pytest.raises(CommandError, match="has no parameter bost: choose one of boost"):
            run("shop", "boots", "--param", "bost=1")
        with pytest.raises(CommandError, match="--param must be NAME=VALUE"):
            run("shop", "boots", "--param", "boost")


class TestPage:
    def look(self, user):
        client = Client()
        client.force_login(user)
        return client.get(reverse("admin:engines"))

    def test_it_lists_engines_and_their_last_answer(self, declare, monkeypatch):
        monkeypatch.setenv("SHOP_KEY", "s3cret-of-the-shop")
        boss = User.objects.create_superuser("boss")
        assert "No engines are declared" in self.look(boss).content.decode()
        parameters = {"boost": {"default": 1, "minimum": 0, "maximum": 10, "words": "Weight of the title."}}
        with search_server(hits_of) as server:
            query = {"q": "{query} {boost}"}
            declare(
                {"shop": shop(server.url, parameters=parameters, query=query, **KEY)},
                {"team": {"url": "https://a.example/hook/1"}},
            )
            assert "never" in self.look(boss).text.partition("Samples")[0]
            ask_all(EngineSetting("shop"), [Question("b")], 10, since=timezone.now(), check=lambda: None)
            page = re.sub(r"<pre.*?</pre>", "", self.look(boss).text, flags=re.DOTALL)  # without samples
            host = f"127.0.0.1:{server.server_port}"
        for text in ("shop", host, "boost=1", "from 0 to 10", "Weight of the title.", "now", "a.example"):
            assert text in page
        assert "never" not in page
        for text in ("s3cret", "SHOP_KEY", "hook/1"):
            assert text not in page

    def test_it_lists_engines_that_benchmarks_alone_name(self, declare):
        boss = User.objects.create_superuser("boss")
        dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="Fruit")
        mapping = make_mapping(dataset, make_collection("Shelf", [{"title": "On pears"}]))
        for owner, engines in ((boss, ["shop", "lost(boost=2)"]), (User.objects.create_user("eve"), ["hidden"])):
            benchmark = make_benchmark(mapping, [0.5], name=f"of {owner}", owner=owner)
            Benchmark.objects.filter(pk=benchmark.pk).update(matrix={"engines": engines})
        declare({"shop": shop("http://127.0.0.1:9/")})
        page = self.look(boss).content.decode().partition("Not declared")[2]
        assert "of boss" in page
        assert "<summary>Declare it</summary>" in page
        assert "engines:\n  lost:\n" in page
        assert "  shop:" not in page
        viewer = User.objects.create_user("vera", is_staff=True)
        viewer.user_permissions.set(Permission.objects.filter(codename__in=["view_operation", "view_benchmark"]))
        assert "Not declared" not in self.look(viewer).content.decode()

    def test_it_says_what_is_wrong_in_which_line(self, settings, tmp_path):
        boss = User.objects.create_superuser("boss")
        assert "No file is named" in self.look(boss).text
        file = tmp_path / "engines.yaml"
        settings.BENCHBENCH_ENGINES = str(file)
        assert "is not read, so that no engine is asked." in self.look(boss).text
        file.write_text(
            "engines:\n  right:\n    preset: json\n    variables: {address: 'https://a.example/find'}\n"
            "  lost:\n    preset: typesens\n  keyed:\n    preset: json\n    private: true\n    secret: NO_SUCH_KEY\n"
            "    variables:\n      address: http://localhost/find\n      colour: red\n"
        )
        page = self.look(boss)
        assert [(entry.name, entry.line) for entry in page.context["review"].wrong] == [
            ("engines.lost", 6),
            ("engines.keyed", 13),
        ]
        assert f"{file}" in page.text
        assert "must be one of chroma" in page.text
        file.write_text(file.read_text().replace("typesens", "json").replace("      colour: red\n", ""))
        file.write_text(file.read_text().replace("lost:", "lost:\n    variables: {address: 'https://b.example/'}"))
        page = self.look(boss)
        assert [(entry.name, entry.line) for entry in page.context["review"].wrong] == [("engines.keyed", 11)]
        assert "needs the environment variable" in page.text
        assert "refused until corrected" not in page.text, "it is asked, without its secret"
        file.write_text(file.read_text() + "  third: {preset: json}\n")
        page = self.look(boss)
        assert "refused until corrected" in page.text
        assert [engine.alias for engine, _ in page.context["rows"]] == ["right", "lost", "keyed"]
        viewer = User.objects.create_user("vera", is_staff=True)
        viewer.user_permissions.set(Permission.objects.filter(codename="view_operation"))
        assert "has 1 wrong entry" in self.look(viewer).text
        assert "third" not in self.look(viewer).text
        file.write_text("engines:\n  third: {preset: json}\n")
        assert "No benchmark can ask an engine" in self.look(boss).text
        file.write_text("engines: [")
        assert "engines.yaml, line 1" in self.look(boss).text
        text = self.look(viewer).text
        assert "has an error, so that none is asked" in text
        for hidden in (str(tmp_path), "line 1", "preset:"):
            assert hidden not in text

    @pytest.mark.parametrize("name", list_samples())
    def test_samples_can_be_used_as_they_are(self, settings, tmp_path, monkeypatch, name):
        for variable in ("SHOP_KEY", "TEAM_KEY"):
            monkeypatch.setenv(variable, "s3cret-of-the-shop")
        file = tmp_path / "engines.yaml"
        settings.BENCHBENCH_ENGINES = str(file)
        file.write_text(list_samples()[name])
        review = review_file()
        assert (review.problem, review.wrong, len(review.entries)) == ("", [], 1)
        page = self.look(User.objects.create_superuser("boss"))
        assert escape(list_samples()[name]) in page.text
        assert "all right." in page.text

    def test_it_shows_the_error_of_a_faulty_file(self, declare):
        declare({"shop": {"colour": 1}})
        page = self.look(User.objects.create_superuser("boss"))
        assert "engines.shop has the unknown key" in page.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_worker_answers_the_page_once(admin_client, declare, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "s3cret-of-the-shop")
    cache.clear()
    django_rq.get_queue(queueing.QUICK).empty()
    page = reverse("admin:engine_try")
    assert "No engines are declared" in admin_client.get(page).content.decode()
    with search_server(hits_of) as server:
        declare({"shop": shop(server.url, **KEY), "torn": shop(server.url, answer={"hits": "hits", "id": "no.id"})})
        assert '<option value="shop" selected' in admin_client.get(page, {"engine": "shop"}).content.decode()
        assert "Query: This field is required." in admin_client.post(page, {"engine": "shop", "q": ""}).content.decode()
        sent = [{"engine": alias, "q": "red <b>boots</b>"} for alias in ("shop", "torn")]
        assert "No worker serves the queue quick" in admin_client.post(page, sent[0]).content.decode()
        queueing.announce_worker("a worker", [queueing.QUICK])
        try:
            for form in sent * 2:
                assert "A worker asks the engine" in admin_client.post(page, form).content.decode()
            Command().handle(queues=["default"], burst=True)
            right, torn = (admin_client.post(page, form | WAITS).text for form in sent)
            brief = [admin_client.post(page, form | WAITS | {"brief": "1"}).text for form in sent]
            declare({"shop": shop("http://127.0.0.1:9/", **KEY), "torn": shop(server.url)})
            for form in sent:
                assert "A worker asks the engine" in admin_client.post(page, form).text, "it may answer otherwise now"
            Command().handle(queues=["default"], burst=True)
            down, mended = (admin_client.post(page, form | WAITS).text for form in sent)
        finally:
            queueing.retire_worker("a worker", [queueing.QUICK])
    assert "The engine shop refuses or breaks connections: start it" in down
    assert "Hits: 2" in mended
    assert "Hits: 2" in right
    assert re.search(r'bb-hint">Answer: status 200, .* ms as seen from here Hits: 2 of 2</p>', brief[0])
    assert "The path that failed: no.id</p>" in brief[1]
    assert "red &lt;b&gt;boots&lt;/b&gt;-1" in right
    assert "s3cret" not in right
    assert "The path id (no.id) of hit 1 must find" in torn
    assert "The path that failed: no.id" in torn
    assert not EngineAnswer.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_page_of_engines_says_that_a_batch_is_ahead(admin_client, declare):
    cache.clear()
    declare({"shop": shop("http://127.0.0.1:9/")})
    operation = start_adding({})
    queueing.announce_worker("here:1", [queueing.QUICK, "default"])
    try:
        assert claim(operation.batches.get().pk, "here:1") is not None
        answer = admin_client.post(reverse("admin:engine_try"), {"engine": "shop", "q": "boots"})
        assert "1 batch ahead" in answer.text
    finally:
        queueing.retire_worker("here:1", [queueing.QUICK, "default"])


def test_new_benchmarks_and_start_lead_to_engines(admin_client, client):
    for page in (reverse("admin:benchmarks_benchmark_add"), reverse("admin:index")):
        main = admin_client.get(page).text.partition('id="content"')[2]
        assert f'href="{reverse("admin:engines")}"' in main
    maker = User.objects.create_user("mia", is_staff=True)
    maker.user_permissions.set(Permission.objects.filter(codename__in=["add_benchmark", "view_mapping"]))
    client.force_login(maker)
    assert reverse("admin:engines") not in client.get(reverse("admin:benchmarks_benchmark_add")).text


def test_readers_of_results_ask_no_engine(client):
    viewer = User.objects.create_user("vera", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_operation"))
    client.force_login(viewer)
    assert client.get(reverse("admin:engines")).status_code == 200
    for answer in (client.get(reverse("admin:engine_try")), client.post(reverse("admin:engine_try"), {"q": "a"})):
        assert answer.status_code == 403
