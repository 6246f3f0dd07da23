"""Questions to small engines at a stated rate: over several workers, and in an open loop."""

import threading
import time

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from apps.engines import asking
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineError
from apps.engines.pacing import Slot
from apps.engines.storing import Reply, Search
from tests.engines.conftest import shop
from tests.engines.questions import ask, questions
from tests.engines.servers import hits_of, search_server

pytestmark = pytest.mark.django_db


class TestPace:
    def test_two_workers_share_one_rate(self, declare):
        """Two workers send 80 requests at 50 a second, within 2 %."""
        moments = []
        with search_server(lambda query: (moments.append(time.monotonic()), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, rate=50, concurrency=8)})
            run_both(lambda: crew(40), lambda: crew(40))
        assert len(moments) == 80
        assert compute_rate(moments) == pytest.approx(50, rel=0.02)

    def test_two_workers_share_the_slots(self, declare):
        with search_server(lambda query: (time.sleep(0.02), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, concurrency=3)})
            ended = run_both(lambda: crew(60), lambda: crew(60))
        assert server.most_running == 3
        assert len(server.queries) == 120
        assert ended

    @pytest.mark.thorough
    def test_slots_of_a_killed_worker_come_back(self, declare):
        with search_server(hits_of) as server:
            declare({"shop": shop(server.url, concurrency=1, timeouts={"connect": 0.1, "total": 0.1})})
            Slot(load_engine("shop"), threading.Event()).enter()  # a killed thread
            started = time.monotonic()
            assert isinstance(ask(1)[0], Reply)
            assert 1.0 < time.monotonic() - started < 6.0


def crew(number):
    """Ask as a worker does, but store nothing: threads of a test have no part in its transaction."""
    engine = load_engine("shop")
    search = Search(engine, engine.complete({}), 10)
    work = asking._Asking(search, engine.read_secret(), questions(number), [""] * number, [None] * number, None, bool)
    return work.ask(range(number))


def run_both(*acts):
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return not any(thread.is_alive() for thread in threads)


def compute_rate(moments):
    """The rate of requests per second, by a line through their moments, which single late ones hardly turn."""
    return 1 / np.polyfit(np.arange(len(moments)), np.sort(moments), 1)[0]


def compute_percentile(replies, percent):
    """The percentile of waiting and service together, in milliseconds."""
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    for reply in replies:
        histogram.record_value(round((reply.waiting_ms + reply.service_ms) * 1000))
    return histogram.get_value_at_percentile(percent) / 1000


class TestOpenLoop:
    def test_requests_are_sent_at_their_rate(self, declare):
        moments = []
        with search_server(lambda query: (moments.append(time.monotonic()), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, concurrency=8)})
            replies = ask(150, rate=100)
        assert compute_rate(moments) == pytest.approx(100, rel=0.02)
        assert all(not reply.is_stored for reply in replies)

    def test_the_percentile_of_a_known_delay_is_right(self, declare):
        """Of 200 answers 4 take 200 ms and the others 20 ms, so the 99th percentile is 200 ms."""

        def answer(query):
            time.sleep(0.2 if int(query["q"].split()[1]) % 50 == 10 else 0.02)
            return hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=16)})
            replies = ask(200, rate=100)
        assert compute_percentile(replies, 99) == pytest.approx(200, rel=0.05)
        assert compute_percentile(replies, 50) < 40

    def test_a_stall_makes_later_requests_wait(self, declare):
        """A server that stalls for a second once holds up 50 requests, which wait although each is served at once."""
        gate = threading.Lock()

        def answer(query):
            with gate:
                if query["q"] == "query 20":
                    time.sleep(1.0)
            return hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=2)})
            replies = ask(80, rate=50)
        totals = [reply.waiting_ms + reply.service_ms for reply in replies]
        expected = [max(0, 1000 - 20 * (index - 20)) for index in range(80)]
        for index in range(21, 60):
            assert totals[index] == pytest.approx(expected[index], abs=100)
        assert sum(reply.service_ms > 500 for reply in replies) == 2
        assert compute_percentile(replies, 99) == pytest.approx(1000, rel=0.05)

    def test_answers_are_stored_after_the_last_request(self, declare, monkeypatch):
        """Storing would delay requests, and so lengthen the times of a server that is not slower."""
        sent = []
        monkeypatch.setattr(asking, "BLOCK", 1)
        monkeypatch.setattr(asking, "store_replies", lambda *args: sent.append((len(server.queries), len(args[1]))))
        with search_server(hits_of) as server:
            declare({"shop": shop(server.url)})
            ask(30, rate=100)
        assert sent == [(30, 30)]

    def test_a_rate_above_the_declared_one_is_refused(self, declare):
        declare({"shop": shop("http://127.0.0.1:9/", rate=10)})
        with pytest.raises(EngineError, match="takes 10 requests per second, not 20"):
            ask(1, rate=20)
