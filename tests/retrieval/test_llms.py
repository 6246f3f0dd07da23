"""Language models: both kinds of server, errors, retries, kept answers."""

import gzip
import re
import threading
import time
import tracemalloc
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils.timezone import now

from apps.operations.models import Operation
from apps.operations.workers import watchdog
from apps.retrieval.availability import UnavailableError
from apps.retrieval.indexing import IndexingError, build_index, create_index
from apps.retrieval.llms import asking
from apps.retrieval.llms.answers import bypass_answers, trim_answers
from apps.retrieval.llms.asking import BACKOFF_SECONDS  # the seconds before fixtures set them to zero
from apps.retrieval.llms.clients import LLMError
from apps.retrieval.llms.servers import complete_llm, load_servers
from apps.retrieval.models import Index, LLMAnswer
from benchbench.texts.storable import is_storable
from tests.retrieval.llm_server import MODEL

KINDS = ("ollama", "openai")


def ask(index, prompt):
    return asking.ask(index, prompt, bool)


def create(collection, **declared):
    return create_index(collection, name="asked", encoder="keyword:apple", strategy="lod_llm", **declared)


@pytest.fixture
def index(fruit, server):
    return create(fruit, llm=MODEL, llm_parameters={"provider": "openai"})


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
class TestAServer:
    """The contract of a kind of server."""

    @pytest.fixture(autouse=True)
    def _of_kind(self, index, kind):
        index.llm_parameters = complete_llm({"provider": kind})

    def test_it_answers_by_temperature_and_seed(self, index, server, kind):
        server.answer = lambda prompt: f"{prompt}!"
        assert ask(index, "Which?").text == "Which?!"
        (requested,) = server.asked
        outcome = requested["options"] if kind == "ollama" else requested
        assert (outcome["temperature"], outcome["seed"]) == (0, 0)
        assert outcome["num_predict" if kind == "ollama" else "max_tokens"] == 500
        assert requested["key"] == (None if kind == "ollama" else "Bearer sk=1")
        assert requested["path"] == ("/api/chat" if kind == "ollama" else "/v1/chat/completions")

    def test_temporary_failures_are_retried(self, index, server):
        statuses = iter([503, 429, "there"] * 3)
        server.answer = lambda prompt: next(statuses)
        assert {ask(index, prompt).text for prompt in ("a", "b", "c")} == {"there"}
        assert len(server.asked) == 9

    def test_each_attempt_waits_longer(self, index, server, monkeypatch):
        waited = []  # after how many attempts, and for how long

        class Clock:
            monotonic, perf_counter = staticmethod(time.monotonic), staticmethod(time.perf_counter)
            sleep = staticmethod(lambda seconds: waited.append((len(server.asked), seconds)))

        monkeypatch.setattr(asking, "time", Clock)
        monkeypatch.setattr(asking, "BACKOFF_SECONDS", BACKOFF_SECONDS)
        server.answer = lambda prompt: 503
        with pytest.raises(LLMError, match="answered 503"):
            ask(index, "Which?")
        assert waited == [(1, 0.5), (2, 1.0)]

    def test_a_server_that_never_ends_its_answer_is_overdue(self, index, server, kind, board):
        """Its own limit is of the wait for a byte; the pool of the worker looks at the board."""
        seen = []
        server.answer = lambda prompt: seen.append(board.read()[1] - time.monotonic()) or "there"
        ask(index, "Which?")
        assert board.read()[1] == watchdog.NEVER
        assert 0 < seen[0] <= 2 * load_servers()[kind].timeout + watchdog.GRACE_SECONDS

    def test_permanent_failure_is_an_error_naming_the_server(self, index, server, kind):
        server.answer = lambda prompt: 500
        with pytest.raises(LLMError, match=f"The language model server {kind} answered 500 for {MODEL}"):
            ask(index, "Which?")
        assert len(server.asked) == asking.ATTEMPTS
        index.llm = "other"
        with pytest.raises(LLMError, match=r"answered 404 for other: .*not found"):
            ask(index, "Which?")
        assert len(server.asked) == asking.ATTEMPTS + 1, "asking again would change nothing"

    def test_errors_reveal_no_address_or_key(self, index, server, kind):
        for status in (500, 401):
            server.answer = lambda prompt, status=status: status
            with pytest.raises(LLMError) as raised:
                ask(index, "Which?")
            assert not re.search(r"://|127\.0|sk=1", raised.value.message)
        assert "refused its key (401): correct BENCHBENCH_LLM_KEYS" in raised.value.message

    def test_key_is_hidden_however_it_is_spelled(self, index, server, settings):
        settings.BENCHBENCH_LLM_KEYS = [f"{kind}=k3y+of/the==server" for kind in KINDS]
        for spelled in (
            "k3y\\u002bof/the\\u003d\\u003dserver",
            "K3Y%2Bof%2Fthe%3d%3dserver",
            "azN5K29mL3RoZT09c2VydmVy",
        ):
            for answer in ((500, f"The key {spelled} is wrong"), f"Your key is {spelled}"):
                server.answer = lambda prompt, answer=answer: answer
                with pytest.raises(LLMError, match="repeats") as raised:
                    ask(index, "Which?")
                assert spelled not in raised.value.message
        assert not LLMAnswer.objects.exists()

    @pytest.mark.parametrize("compressed", [True, False])
    def test_huge_answer_ends_at_its_limit(self, index, server, compressed):
        body = b" " * 50_000_000 + b"{}"
        server.answer = lambda prompt: gzip.compress(body) if compressed else body
        server.encoding = "gzip" if compressed else "identity"
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            with pytest.raises(LLMError):
                ask(index, "Which?")
            assert tracemalloc.get_traced_memory()[1] - before < 100_000_000  # the body of the server is one half
        finally:
            tracemalloc.stop()

    def test_answer_that_cannot_be_stored_is_cleaned(self, index, server):
        server.answer = lambda prompt: "a\0b\ud800c" + "x" * 300_000
        text = ask(index, "Which?").text
        assert text.startswith("a\ufffdb\ufffdcxxx")
        assert len(text) == asking.LONGEST
        assert LLMAnswer.objects.get().text == text

    def test_error_that_cannot_be_stored_is_cleaned(self, index, server):
        server.answer = lambda prompt: (500, "a\0b\ud800c" + "x" * 300_000)
        with pytest.raises(LLMError) as raised:
            ask(index, "Which?")
        assert is_storable(raised.value.message)
        assert len(raised.value.message) < 500

    def test_an_answer_that_is_late_may_come_in_time(self, index, server, settings):
        settings.BENCHBENCH_LLM_TIMEOUT_SECONDS = 1.0
        again = threading.Event()

        def answer(prompt):
            if len(server.asked) == 1:
                again.wait(60)
            again.set()
            return "there"

        server.answer = answer
        assert ask(index, "Which?").text == "there"
        assert again.is_set()

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"choices": [], "message": 1}', b'"yes"'])
    def test_rubbish_is_no_answer(self, index, server, body):
        server.answer = lambda prompt: body
        with pytest.raises(LLMError, match=r"did not answer by .*'s API"):
            ask(index, "Which?")
        assert not LLMAnswer.objects.exists()

    def test_failing_server_is_not_asked_for_a_while(self, index, server, kind, settings, monkeypatch):
        settings.BENCHBENCH_LLM_SERVERS = [f"{kind}={kind}+http://127.0.0.1:1"]
        for _ in range(asking.breakers[kind].size):
            with pytest.raises(LLMError, match=rf"{kind} does not answer"):
                ask(index, "Which?")
        settings.BENCHBENCH_LLM_SERVERS = [f"{kind}={kind}+{server.url}{'/v1' * (kind == 'openai')}"]
        message = r"paused for 30 seconds, because it failed 30 of its latest 30 requests \(100 %\)\. Start it or check"
        with pytest.raises(LLMError, match=message):
            ask(index, "Which?")
        assert not server.asked
        monkeypatch.setattr(asking, "time", later(asking.time, 31))
        assert ask(index, "Which?").text == "yes"

    def test_a_dead_model_builds_no_index(self, index, server, kind, settings):
        Index.objects.update(llm="other", llm_parameters=index.llm_parameters)
        with pytest.raises(UnavailableError, match=f"{kind} has no model 'other'; available: {MODEL}"):
            build_index(index)
        settings.BENCHBENCH_LLM_SERVERS = [f"{kind}={kind}+http://127.0.0.1:1"]
        with pytest.raises(UnavailableError, match=f"the language model server {kind} does not answer"):
            build_index(index)
        assert not Operation.objects.exists()


def later(clock, seconds):
    class Clock:
        perf_counter, sleep = staticmethod(clock.perf_counter), staticmethod(clock.sleep)
        monotonic = staticmethod(lambda: clock.monotonic() + seconds)

    return Clock


@pytest.mark.django_db
class TestSettingsOfOneServer:
    @pytest.fixture(autouse=True)
    def _of_ollama(self, index):
        index.llm_parameters = complete_llm({"provider": "ollama"})

    def test_a_server_may_take_longer_than_others(self, index, server, settings):
        settings.BENCHBENCH_LLM_TIMEOUT_SECONDS = 0.05
        settings.BENCHBENCH_LLM_TIMEOUTS = ["ollama=60"]
        server.answer = lambda prompt: time.sleep(0.2) or "there"
        assert ask(index, "Which?").text == "there"
        assert len(server.asked) == 1

    def test_ollama_requests_include_the_context_size(self, index, server, settings):
        for contexts in ([], ["ollama=8192"], ["ollama=8192"]):
            settings.BENCHBENCH_LLM_CONTEXTS = contexts
            ask(index, "Which?")
        assert [requested["options"].get("num_ctx") for requested in server.asked] == [None, 8192]

    @pytest.mark.parametrize(
        ("setting", "declared", "message"),
        [
            ("TIMEOUTS", "ollama", "TIMEOUTS: 'ollama' must be NAME=NUMBER"),
            ("TIMEOUTS", "olama=3", "TIMEOUTS: olama is not a server of BENCHBENCH_LLM_SERVERS"),
            ("CONTEXTS", "openai=8192", "CONTEXTS: openai is not an Ollama server"),
        ],
    )
    def test_bad_settings_fail(self, server, settings, setting, declared, message):
        setattr(settings, f"BENCHBENCH_LLM_{setting}", [declared])
        with pytest.raises(ImproperlyConfigured, match=message):
            load_servers()


@pytest.mark.django_db
class TestKeptAnswers:
    def test_the_same_is_asked_once(self, index, server):
        first, second = ask(index, "Which?"), ask(index, "Which?")
        assert (second.text, second.ms, second.is_cached) == (first.text, first.ms, True)
        index.llm_parameters["seed"] = 1
        assert not ask(index, "Which?").is_cached
        assert not ask(index, "What?").is_cached
        assert (len(server.asked), LLMAnswer.objects.count()) == (3, 3)

    def test_another_address_is_asked_again(self, index, server, settings):
        index.llm_parameters = complete_llm({"provider": "openai"})
        assert [ask(index, "Which?").is_cached for _ in range(2)] == [False, True]
        settings.BENCHBENCH_LLM_SERVERS = [f"openai=openai+{server.url}/v1/"]
        assert not ask(index, "Which?").is_cached

    def test_a_new_revision_is_asked(self, index, server, monkeypatch):
        index.llm_parameters = complete_llm({"provider": "ollama"})
        ask(index, "Which?")
        server.digest = "d2"
        assert ask(index, "Which?").is_cached, "the server is asked for it once a minute"
        monkeypatch.setattr(asking, "time", later(asking.time, asking.REVISION_SECONDS + 1))
        assert not ask(index, "Which?").is_cached
        assert list(LLMAnswer.objects.order_by("pk").values_list("revision", flat=True)) == ["d1", "d2"]

    def test_consistency_runs_pass_it_by(self, index, server):
        ask(index, "Which?")
        server.answer = lambda prompt: "no"
        with bypass_answers():
            assert (ask(index, "Which?").text, ask(index, "What?").is_cached) == ("no", False)
        assert ask(index, "Which?").text == "yes"
        assert LLMAnswer.objects.count() == 1

    def test_the_first_answer_stays(self, index, server, monkeypatch):
        monkeypatch.setattr(asking, "find_answer", lambda key: None)
        assert ask(index, "Which?").text == "yes"
        server.answer = lambda prompt: "no"
        assert ask(index, "Which?").text == LLMAnswer.objects.get().text == "yes"
        assert len(server.asked) == 2

    def test_the_longest_unused_go(self, index, server, settings):
        for prompt in ("a", "b", "c"):
            ask(index, prompt)
        LLMAnswer.objects.filter(prompt__in="ab").update(used_at=now() - timedelta(days=2))
        ask(index, "a")  # used again
        settings.BENCHBENCH_LLM_CACHE_BYTES = 2 * len("ayes")
        assert trim_answers() == 1
        assert set(LLMAnswer.objects.values_list("prompt", flat=True)) == {"a", "c"}

    def test_the_cache_can_be_passed_by(self, index, server):
        ask(index, "Which?")
        server.answer = lambda prompt: "no"
        index.llm_parameters["cache"] = False
        assert [ask(index, "Which?").text for _ in range(2)] == ["no", "no"]
        index.llm_parameters["cache"] = True
        assert ask(index, "Which?").text == "yes"


@pytest.mark.django_db
class TestNaming:
    def test_servers_are_those_of_the_settings(self, server, settings):
        assert list(load_servers()) == ["ollama", "openai"]
        settings.BENCHBENCH_LLM_SERVERS = ["http://somewhere"]
        with pytest.raises(ImproperlyConfigured, match="must be NAME=KIND"):
            load_servers()

    @pytest.mark.parametrize(
        ("declared", "message"),
        [
            ({}, "its strategy needs a language model: name one"),
            ({"provider": "cloud"}, "cloud is unknown: choose one of ollama, openai"),
            ({"provider": "ollama", "base_url": "http://evil"}, "ollama has another address than http://evil"),
        ],
    )
    def test_unavailable_llms_are_rejected(self, fruit, server, declared, message):
        declared = {"llm": MODEL, "llm_parameters": declared} if declared else {}
        with pytest.raises(UnavailableError, match=message):
            create(fruit, **declared)

    def test_parameters_are_complete_and_of_their_types(self, fruit, server):
        parameters = {"provider": "ollama", "base_url": server.url + "/", "temperature": 1, "max_tokens": None}
        created = create(fruit, llm=MODEL, llm_parameters=parameters)
        complete = {"provider": "ollama", "temperature": 1.0, "max_tokens": 500, "seed": 0, "cache": True}
        assert created.llm_parameters == complete
        for wrong in ({"temperature": "0"}, {"seed": True}, {"stop": "."}):
            with pytest.raises(LLMError, match="Parameters of a language model must be"):
                complete_llm({"provider": "ollama", **wrong})

    def test_a_strategy_that_asks_none_is_given_none(self, fruit, server):
        with pytest.raises(IndexingError, match="The strategy flat uses no language model"):
            create_index(fruit, name="asked", llm=MODEL)

    def test_error_without_servers_names_the_missing_setting(self, fruit):
        with pytest.raises(UnavailableError, match="set BENCHBENCH_LLM_SERVERS"):
            create(fruit, llm=MODEL)
