"""Questions to small engines at a stated rate: over several workers, and in an open loop."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from apps.engines import asking
from apps.engines.declarations import load_engine
from apps.engines.errors import EngineError
from apps.engines.pacing import TOLERANCE_SECONDS, Slot
from apps.engines.storing import Reply, Search
from tests.engines.questions import ask, questions, shop
from tests.engines.servers import hits_of, search_server

pytestmark = pytest.mark.django_db


class Waits(threading.Event):
    """Ends no wait early, and does not wait: `seconds` are those of the last wait."""

    seconds = 0.0

    def wait(self, timeout=None):
        self.seconds = timeout
        return False


class TestPace:
    def test_two_workers_send_no_faster_than_the_rate(self, declare):
        moments, began = [], time.monotonic()
        with search_server(lambda query: (moments.append(time.monotonic()), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, rate=50, concurrency=8)})
            run_both(lambda: crew(40), lambda: crew(40))
        assert len(moments) == 80
        late_by = np.sort(moments) - began - np.arange(80) / 50
        assert late_by.min() > -TOLERANCE_SECONDS - 0.01  # by the clocks of two processes

    def test_each_request_is_due_one_interval_later(self, declare):
        """Anyone who asks: each is due 20 ms after the one before, or is late by more than is made good."""
        declare({"shop": shop("http://127.0.0.1:9/", rate=50, concurrency=8)})
        earliest = latest = -np.inf
        slots = [(Slot(load_engine("shop"), waits), waits) for waits in (Waits(), Waits())]
        for slot, waits in slots * 40:
            before = time.time()
            slot.enter()
            after = time.time()
            earliest = max(earliest + 1 / 50, before - TOLERANCE_SECONDS)
            latest = max(latest + 1 / 50, after)
            assert after + waits.seconds > earliest - 0.001
            assert waits.seconds == 0 or before + waits.seconds < latest + 0.001

    def test_two_workers_share_the_slots(self, declare):
        with search_server(lambda query: (time.sleep(0.02), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, concurrency=3)})
            ended = run_both(lambda: crew(60), lambda: crew(60))
        assert server.most_running == 3
        assert len(server.queries) == 120
        assert ended

    @pytest.mark.thorough
    def test_slots_of_a_killed_worker_come_back(self, declare):
        began, moments = time.monotonic(), []
        with search_server(lambda query: (moments.append(time.monotonic()), hits_of(query))[1]) as server:
            declare({"shop": shop(server.url, concurrency=1)})
            engine = load_engine("shop")
            short = replace(engine, timeouts=replace(engine.timeouts, connect=0.1, total=0.1))
            Slot(short, threading.Event()).enter()  # a killed thread has the only slot
            assert isinstance(ask(1)[0], Reply)
        assert moments[0] - began > 3.1, "its lease ended"


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


def find_lateness(moments, replies, rate):
    """Return the least and the greatest moment at which an open loop may have begun, by each of its requests.

    Each arrived after it was due and had waited, and before its service ended.
    """
    due = np.array(moments) - np.arange(len(replies)) / rate
    waited = np.array([reply.waiting_ms for reply in replies]) / 1000
    served = np.array([reply.service_ms for reply in replies]) / 1000
    return (due - waited - served).max(), (due - waited).min()


class TestOpenLoop:
    def test_requests_are_sent_at_their_rate(self, declare):
        moments = {}

        def answer(query):
            moments[int(query["q"].split()[1])] = time.monotonic()
            return hits_of(query)

        began = time.monotonic()
        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=8)})
            replies = ask(150, rate=100)
        earliest, latest = find_lateness([moments[number] for number in range(150)], replies, 100)
        assert began < latest
        assert earliest < latest + 1e-6, "one beginning explains when each request came"
        assert all(not reply.is_stored for reply in replies)

    def test_answers_take_as_long_as_the_engine(self, declare):
        """Of 200 answers 4 take 200 ms and the others 20 ms; what a busy machine adds is least for one of each."""

        def answer(query):
            time.sleep(0.2 if int(query["q"].split()[1]) % 50 == 10 else 0.02)
            return hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=16)})
            replies = ask(200, rate=100)
        added = [
            reply.waiting_ms + reply.service_ms - (200 if number % 50 == 10 else 20)
            for number, reply in enumerate(replies)
        ]
        assert 0 <= min(added) < 20
        assert 0 <= min(added[10::50]) < 200

    def test_a_stall_makes_later_requests_wait(self, declare):
        """A server that stalls for a second once holds up 50 requests, which wait although each is served at once."""
        stalled = threading.Event()

        def answer(query):
            number = int(query["q"].split()[1])
            if number == 20:
                time.sleep(1.0)
                stalled.set()
            elif number > 20:
                stalled.wait(60)
            return hits_of(query)

        with search_server(answer) as server:
            declare({"shop": shop(server.url, concurrency=2)})
            replies = ask(80, rate=50)
        totals = [reply.waiting_ms + reply.service_ms for reply in replies]
        assert totals[20] >= 1000
        for index in range(21, 60):
            assert totals[index] >= 1000 - 20 * (index - 20)
        for index in range(22, 60):  # two are on their way
            assert replies[index].waiting_ms >= 1000 - 20 * (index - 20)
        assert min(reply.service_ms for reply in replies[22:60]) < 20, "each is served at once"

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
