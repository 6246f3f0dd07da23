"""Questions to small engines: stored, repeated, and asked again after an outage."""

import threading
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.engines import asking, sending
from apps.engines.asking import ask_all
from apps.engines.declarations import load_engine
from apps.engines.errors import AnswerError, EngineDownError, EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.models import EngineAnswer
from apps.engines.storing import Question, Reply, trim_answers
from benchbench.ir.planning.engine import EngineSetting
from tests.engines.questions import ask, shop
from tests.engines.servers import hits_of, search_server

pytestmark = pytest.mark.django_db


class TestReplies:
    def test_hits_keep_the_order_of_the_engine(self, declare):
        with search_server(
            lambda query: (200, {"found": 2, "hits": [{"id": 1, "score": "0.5"}, {"id": "b", "score": 2}]})
        ) as server:
            declare({"shop": shop(server.url)})
            [reply] = ask(1)
        assert [(hit.id, hit.score) for hit in reply.hits] == [("1", 0.5), ("b", 2.0)]
        assert (reply.total, reply.retries, reply.is_stored) == (2, 0, False)

    def test_deep_lists_are_asked_page_by_page(self, declare):
        def answer(query):
            offset, size = int(query["offset"]), int(query["size"])
            return 200, {"found": 25, "hits": [{"id": n} for n in range(offset, min(25, offset + size))]}

        with search_server(answer) as server:
            declare({"shop": shop(server.url, page_size=10)})
            assert [len(reply.hits) for depth in (7, 10, 15, 25, 90) for reply in ask(1, depth)] == [7, 10, 15, 25, 25]
            assert len(server.queries) == 1 + 1 + 2 + 3 + 3

    def test_no_hits_are_an_empty_ranking(self, declare):
        with search_server(lambda query: (200, {"found": 0, "hits": []})) as server:
            declare({"shop": shop(server.url)})
            assert ask(1)[0].hits == ()

    def test_fewer_hits_than_counted_are_an_error(self, declare):
        with search_server(lambda query: (200, {"found": 40, "hits": [{"id": 1}]})) as server:
            declare({"shop": shop(server.url)})
            [error] = ask(1)
        assert isinstance(error, AnswerError)
        assert "returned 1 of 10 hits though it counts 40" in error.message

    def test_a_failing_query_is_an_error_of_its_own(self, declare):
        answers = {"query 1": (400, {"message": "syntax"}), "query 2": (503, {})}
        with search_server(lambda query: answers.get(query["q"]) or hits_of(query)) as server:
            declare({"shop": shop(server.url)})
            replies = ask(6)
        assert [type(reply) for reply in replies] == [Reply, EngineError, TemporaryEngineError, Reply, Reply, Reply]
        assert replies[1].message == (
            'The engine shop answered 400: correct its declaration. It says: {"message": "syntax"}'
        )


class TestStored:
    def test_answers_of_this_work_are_not_asked_again(self, declare):
        began = timezone.now()
        with search_server(hits_of) as server:
            declare({"shop": shop(server.url)})
            first, again = ask(3, since=began), ask(5, since=began)
            assert sorted(server.queries) == [f"query {n}" for n in range(5)]
            assert [reply.is_stored for reply in again] == [True, True, True, False, False]
            assert [reply.hits for reply in again[:3]] == [reply.hits for reply in first]
            assert not ask(1)[0].is_stored, "an answer of earlier work is asked again"

    def test_another_version_or_parameter_asks_again(self, declare):
        began = timezone.now()
        options = {"parameters": {"boost": {"default": 1}}}
        with search_server(hits_of) as server:
            query = {"q": "{query}", "boost": "{boost}"}
            for version, setting in (("1", "shop"), ("1", "shop(boost=1)"), ("1", "shop(boost=2)"), ("2", "shop")):
                declare({"shop": shop(server.url, version=version, query=query, **options)})
                ask(1, setting=setting, since=began)
            assert len(server.queries) == 3
        assert EngineAnswer.objects.count() == 3

    def test_stopped_work_keeps_its_answers(self, declare):
        stopped = threading.Event()

        def answer(query):
            if len(server.queries) == 3:
                stopped.wait(60)
            return hits_of(query)

        def check():
            if len(server.queries) >= 3:
                raise KeyError

        began = timezone.now()
        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=1, timeouts={"total": 90})})
            with pytest.raises(KeyError):
                ask(50, since=began, check=check)
            stored = EngineAnswer.objects.count()
            stopped.set()
            assert 1 <= stored <= 2
            assert sum(reply.is_stored for reply in ask(6, since=began)) == stored

    def test_the_oldest_answers_are_trimmed(self, declare, settings):
        with search_server(hits_of) as server:
            declare({"shop": shop(server.url)})
            ask(4)
        EngineAnswer.objects.filter(text="query 2").update(asked_at=timezone.now() - timedelta(days=1))
        assert trim_answers() == 0
        settings.BENCHBENCH_ENGINE_CACHE_BYTES = 300
        assert 1 <= trim_answers() < 4
        assert not EngineAnswer.objects.filter(text="query 2").exists()

    def test_a_secret_is_stored_nowhere(self, declare, monkeypatch):
        monkeypatch.setenv("SHOP_KEY", "s3cret-of-the-shop")
        with search_server(hits_of) as server:
            declare({"shop": shop(server.url, secret="SHOP_KEY", headers={"X-Key": "{secret}"})})
            replies = ask(1)
        row = EngineAnswer.objects.values().get()
        assert "s3cret" not in f"{replies} {row} {load_engine('shop')!r}"


class TestRetries:
    def test_a_server_that_fails_sometimes_gives_all_answers(self, declare):
        """Every tenth request fails; each failure is a retry of a query that has an answer in the end."""
        numbers, lock = iter(range(10_000)), threading.Lock()

        def answer(query):
            with lock:
                number = next(numbers)
            return (503, {}) if number % 10 == 9 else hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url)})
            replies = ask(200)
            failures = len(server.queries) - 200
        assert all(isinstance(reply, Reply) for reply in replies)
        assert sum(reply.retries for reply in replies) == failures >= 20

    def test_an_engine_that_was_down_resumes(self, declare, monkeypatch):
        """After an outage longer than all retries, every question has its answer."""
        monkeypatch.setattr(asking, "PROBE_SECONDS", 0.05)
        began, outage = time.monotonic(), (0.3, 1.3)

        def answer(query):
            is_down = outage[0] < time.monotonic() - began < outage[1]
            time.sleep(0.005)
            return (503, {}) if is_down else hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url, patience=30)})
            replies = ask(400)
            assert time.monotonic() - began > outage[1]
            assert len(server.queries) < 400 + 120
        assert all(isinstance(reply, Reply) for reply in replies)

    @pytest.mark.parametrize("number", [1, 40])
    def test_an_engine_that_stays_down_is_one_sentence(self, declare, number):
        declare({"shop": shop("http://127.0.0.1:9/", patience=0.3)})
        checks = []
        errors = ask(number, check=lambda: checks.append(1))
        assert {type(error) for error in errors} == {EngineDownError}
        assert len(set(errors)) == 1
        assert errors[0].message == (
            "The engine shop is down: it did not answer for 0.3 seconds. Start it or read its log, then resume. Its "
            "last error: The engine shop refuses or breaks connections: start it or read its log."
        )
        assert checks


class TestLists:
    """Lists that would silently lack hits are errors of their queries."""

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            (lambda query: [{"id": n} for n in range(int(query["size"]))], "returned the same page twice"),
            (lambda query: [{"id": n} for n in range(12)], "returned more than 10 hits: use {size}"),
        ],
    )
    def test_a_wrong_page_is_an_error(self, declare, answer, problem):
        with search_server(lambda query: (200, {"hits": answer(query)})) as server:
            declare({"shop": shop(server.url, page_size=10)})
            [error] = ask(1, 30)
        assert problem in error.message


class TestOutages:
    @pytest.mark.parametrize("wait", [1, 2, 60, 3600])
    @pytest.mark.parametrize("number", [1, 8])
    def test_engine_never_makes_us_wait_beyond_its_patience(self, declare, wait, number):
        """However long the engine asks to wait, and however many questions there are."""
        with search_server(lambda query: (503, {})) as server:
            server.headers["Retry-After"] = str(wait)
            declare({"shop": shop(server.url, patience=2.0, concurrency=2)})
            started = time.monotonic()
            replies = ask(number)
            seconds = time.monotonic() - started
        assert {type(reply) for reply in replies} == {EngineDownError}
        assert seconds < 30, "the patience, and a probe at its end"

    def test_engine_is_asked_when_it_wants_to_be(self, declare):
        with search_server(lambda query: (503, {}) if len(server.queries) < 2 else hits_of(query)) as server:
            server.headers["Retry-After"] = "1"
            declare({"shop": shop(server.url, patience=30.0)})
            started = time.monotonic()
            [reply] = ask(1)
            assert time.monotonic() - started >= 1.0
        assert reply.retries == 1

    def test_later_batches_do_not_wait_again(self, declare):
        with search_server(lambda query: (503, {})) as server:
            declare({"shop": shop(server.url, patience=1.0)})
            assert isinstance(ask(1)[0], EngineDownError)
            before = len(server.queries)
            for _ in range(3):
                assert isinstance(ask(2)[1], EngineDownError)
            assert len(server.queries) == before + 3, "each has one probe"

    def test_a_slow_question_is_no_outage(self, declare):
        """One that always runs out of time, alone in its batch, as in isolated execution."""
        late = threading.Event()
        with search_server(lambda query: (query["q"] == "query 1" and late.wait(60), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url)})
            assert isinstance(ask(1)[0], Reply)
            declare({"shop": shop(server.url, timeouts={"total": 0.2})})
            asking.healths["shop"].record_success()  # what `declare` forgot
            setting, since = EngineSetting("shop"), timezone.now()
            [error] = ask_all(setting, [Question("query 1")], 10, since=since, check=bool)
            late.set()
        assert isinstance(error, EngineTimeoutError)

    def test_failures_before_an_answer_count_as_retries(self, declare, monkeypatch):
        monkeypatch.setattr(asking, "PROBE_SECONDS", 0.01)
        with search_server(lambda query: (503, {}) if len(server.queries) < 7 else hits_of(query)) as server:
            declare({"shop": shop(server.url)})
            [reply] = ask(1)
        assert reply.retries == 6

    def test_nothing_is_sent_after_the_work_stopped(self, declare, monkeypatch):
        monkeypatch.setitem(sending.BACKOFF, "wait_initial", 0.5)
        sent, threads = [], set(threading.enumerate())

        def check():
            if server.queries:
                sent.append(len(server.queries))
                raise KeyError

        with search_server(lambda query: (503, {})) as server:
            declare({"shop": shop(server.url, concurrency=1)})
            with pytest.raises(KeyError):
                ask(3, check=check)
            for thread in set(threading.enumerate()) - threads:
                if "(" not in thread.name:  # of the asking, not of the server
                    thread.join(60)
            assert [len(server.queries)] == sent


def test_questions_share_a_connection(declare):
    """Also those of later calls, so that the times of an isolated query have no handshake."""
    with search_server(hits_of) as server:
        declare({"shop": shop(server.url, concurrency=1)})
        for _ in range(3):
            ask(2)
        assert server.connections == 1
