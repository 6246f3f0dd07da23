"""Language models: both kinds of server, errors, retries, kept answers; and the strategy that asks one."""

import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils.timezone import now

from apps.collections.models import Collection
from apps.operations.workers import watchdog
from apps.operations.workers.watchdog import Board
from apps.operations.working import OperationFailedError
from apps.retrieval.availability import UnavailableError
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.indexing import IndexingError, create_index
from apps.retrieval.llms import asking
from apps.retrieval.llms.answers import keep_answer, passing_by_answers, trim_answers
from apps.retrieval.llms.asking import ask
from apps.retrieval.llms.base import LLMError
from apps.retrieval.llms.servers import checked_llm, servers
from apps.retrieval.models import Index, LLMAnswer
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.strategies.base import Answer
from apps.retrieval.strategies.lod_llm import labels, picked
from tests.retrieval.llm_server import MODEL, LLMServer
from tests.retrieval.test_strategies import hits
from tests.retrieval.words import BAG, BagOfWords, import_words

KINDS = ("ollama", "openai")


@pytest.fixture
def index(fruit: Collection, server: LLMServer) -> Index:
    stated = {"llm": MODEL, "llm_parameters": {"provider": "openai"}}
    return create_index(fruit, name="asked", encoder="keyword:apple", strategy="lod_llm", **stated)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", KINDS)
class TestAServer:
    """The contract of a kind of server."""

    @pytest.fixture(autouse=True)
    def _of_kind(self, index: Index, kind: str) -> None:
        index.llm_parameters = checked_llm({"provider": kind})

    def test_it_answers_by_temperature_and_seed(self, index: Index, server: LLMServer, kind: str) -> None:
        server.answer = lambda prompt: f"{prompt}!"
        assert ask(index, "Which?").text == "Which?!"
        (asked,) = server.asked
        told = asked["options"] if kind == "ollama" else asked
        assert (told["temperature"], told["seed"]) == (0, 0)
        assert told["num_predict" if kind == "ollama" else "max_tokens"] == 500
        assert asked["key"] == (None if kind == "ollama" else "Bearer sk=1")
        assert asked["path"] == ("/api/chat" if kind == "ollama" else "/v1/chat/completions")

    def test_what_may_pass_is_asked_again(self, index: Index, server: LLMServer) -> None:
        statuses = iter([503, 429])
        server.answer = lambda prompt: next(statuses, "there")
        assert ask(index, "Which?").text == "there"
        assert len(server.asked) == 3

    def test_a_server_that_never_ends_its_answer_is_overdue(self, index: Index, server: LLMServer, kind: str) -> None:
        """Its own limit is of the wait for a byte; the pool of the worker looks at the board."""
        board, seen = Board(), []
        server.answer = lambda prompt: seen.append(board.read()[1] - time.monotonic()) or "there"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watchdog._watch, "board", board)
            ask(index, "Which?")
            assert board.read()[1] == watchdog.NEVER
        assert 0 < seen[0] <= 2 * servers()[kind].timeout + watchdog.GRACE_SECONDS

    def test_what_does_not_pass_is_a_sentence_with_the_server(self, index: Index, server: LLMServer, kind: str) -> None:
        server.answer = lambda prompt: 500
        with pytest.raises(LLMError, match=f"The language model server {kind} answered 500 for {MODEL}"):
            ask(index, "Which?")
        assert len(server.asked) == asking.ATTEMPTS
        index.llm = "other"
        with pytest.raises(LLMError, match=r"answered 404 for other: .*not found"):
            ask(index, "Which?")
        assert len(server.asked) == asking.ATTEMPTS + 1, "asking again would change nothing"

    def test_no_error_tells_an_address_or_a_key(self, index: Index, server: LLMServer, kind: str) -> None:
        for status in (500, 401):
            server.answer = lambda prompt, status=status: status  # type: ignore[misc]
            with pytest.raises(LLMError) as raised:
                ask(index, "Which?")
            assert not re.search(r"://|127\.0|sk=1", raised.value.message)
        assert "refuses its key (401): correct BENCHBENCH_LLM_KEYS" in raised.value.message

    def test_an_answer_that_is_late_may_come_in_time(self, index: Index, server: LLMServer, settings: Any) -> None:
        settings.BENCHBENCH_LLM_TIMEOUT_SECONDS = 0.2
        waits = iter([1.0])
        server.answer = lambda prompt: time.sleep(next(waits, 0.0)) or "there"
        assert ask(index, "Which?").text == "there"
        assert len(server.asked) == 2

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"choices": [], "message": 1}', b'"yes"'])
    def test_rubbish_is_no_answer(self, index: Index, server: LLMServer, body: bytes) -> None:
        server.answer = lambda prompt: body
        with pytest.raises(LLMError, match=r"answered what is no answer of .*'s API"):
            ask(index, "Which?")
        assert not LLMAnswer.objects.exists()

    def test_a_server_that_is_down_is_left_alone_for_a_while(
        self, index: Index, server: LLMServer, kind: str, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.BENCHBENCH_LLM_SERVERS = [f"{kind}={kind}+http://127.0.0.1:1"]
        for _ in range(2):
            with pytest.raises(LLMError, match=rf"{kind} (does not answer|has failed 5 times in a row)"):
                ask(index, "Which?")
        settings.BENCHBENCH_LLM_SERVERS = [f"{kind}={kind}+{server.url}{'/v1' * (kind == 'openai')}"]
        with pytest.raises(LLMError, match="not asked for 30 seconds"):
            ask(index, "Which?")
        assert not server.asked
        monkeypatch.setattr(asking, "time", later(asking.time, 31))
        assert ask(index, "Which?").text == "yes"

    def test_a_model_that_it_lacks_is_told_when_the_index_is_built(
        self, fruit: Collection, built: Any, kind: str
    ) -> None:
        stated = {"strategy": "lod_llm", "llm_parameters": {"provider": kind}}
        with pytest.raises(OperationFailedError, match=f"{kind} has no model 'other'; it has {MODEL}"):
            built(fruit, name="b", llm="other", **stated)


def later(clock: Any, seconds: float) -> Any:
    class Clock:
        perf_counter, sleep = staticmethod(clock.perf_counter), staticmethod(clock.sleep)
        monotonic = staticmethod(lambda: clock.monotonic() + seconds)

    return Clock


@pytest.mark.django_db
class TestSettingsOfOneServer:
    @pytest.fixture(autouse=True)
    def _of_ollama(self, index: Index) -> None:
        index.llm_parameters = checked_llm({"provider": "ollama"})

    def test_a_server_may_take_longer_than_others(self, index: Index, server: LLMServer, settings: Any) -> None:
        settings.BENCHBENCH_LLM_TIMEOUT_SECONDS = 0.05
        settings.BENCHBENCH_LLM_TIMEOUTS = ["ollama=60"]
        server.answer = lambda prompt: time.sleep(0.2) or "there"
        assert ask(index, "Which?").text == "there"
        assert len(server.asked) == 1

    def test_ollama_is_told_its_context_and_an_answer_in_another_is_another(
        self, index: Index, server: LLMServer, settings: Any
    ) -> None:
        for contexts in ([], ["ollama=8192"], ["ollama=8192"]):
            settings.BENCHBENCH_LLM_CONTEXTS = contexts
            ask(index, "Which?")
        assert [asked["options"].get("num_ctx") for asked in server.asked] == [None, 8192]

    @pytest.mark.parametrize(
        ("setting", "stated", "said"),
        [
            ("TIMEOUTS", "ollama", "TIMEOUTS: 'ollama' is not NAME=NUMBER"),
            ("TIMEOUTS", "olama=3", "TIMEOUTS: olama is not a server of BENCHBENCH_LLM_SERVERS"),
            ("CONTEXTS", "openai=8192", "CONTEXTS: openai is not an Ollama server"),
        ],
    )
    def test_what_names_no_server_is_refused(
        self, server: LLMServer, settings: Any, setting: str, stated: str, said: str
    ) -> None:
        setattr(settings, f"BENCHBENCH_LLM_{setting}", [stated])
        with pytest.raises(ImproperlyConfigured, match=said):
            servers()


@pytest.mark.django_db
class TestKeptAnswers:
    def test_the_same_is_asked_once(self, index: Index, server: LLMServer) -> None:
        first, second = ask(index, "Which?"), ask(index, "Which?")
        assert (second.text, second.ms, second.is_cached) == (first.text, first.ms, True)
        index.llm_parameters["seed"] = 1
        assert not ask(index, "Which?").is_cached
        assert not ask(index, "What?").is_cached
        assert (len(server.asked), LLMAnswer.objects.count()) == (3, 3)

    def test_another_revision_of_a_model_is_asked_anew(
        self, index: Index, server: LLMServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index.llm_parameters = checked_llm({"provider": "ollama"})
        ask(index, "Which?")
        server.digest = "d2"
        assert ask(index, "Which?").is_cached, "the server is asked for it once a minute"
        monkeypatch.setattr(asking, "time", later(asking.time, asking.REVISION_SECONDS + 1))
        assert not ask(index, "Which?").is_cached
        assert list(LLMAnswer.objects.order_by("pk").values_list("revision", flat=True)) == ["d1", "d2"]

    def test_consistency_runs_pass_it_by(self, index: Index, server: LLMServer) -> None:
        ask(index, "Which?")
        server.answer = lambda prompt: "no"
        with passing_by_answers():
            assert (ask(index, "Which?").text, ask(index, "What?").is_cached) == ("no", False)
        assert ask(index, "Which?").text == "yes"
        assert LLMAnswer.objects.count() == 1

    def test_of_two_that_are_kept_at_once_the_first_stays(self) -> None:
        told = {"key": "k", "model": MODEL, "prompt": "Which?", "parameters": {}, "ms": 1.0}
        assert keep_answer(LLMAnswer(**told, text="first")).text == "first"
        assert keep_answer(LLMAnswer(**told, text="second")).text == "first"

    def test_the_longest_unused_go(self, index: Index, server: LLMServer, settings: Any) -> None:
        for prompt in ("a", "b", "c"):
            ask(index, prompt)
        LLMAnswer.objects.filter(prompt__in="ab").update(used_at=now() - timedelta(days=2))
        ask(index, "a")  # used again
        settings.BENCHBENCH_LLM_CACHE_BYTES = 2 * len("ayes")
        assert trim_answers() == 1
        assert set(LLMAnswer.objects.values_list("prompt", flat=True)) == {"a", "c"}

    def test_the_cache_can_be_passed_by(self, index: Index, server: LLMServer) -> None:
        ask(index, "Which?")
        server.answer = lambda prompt: "no"
        index.llm_parameters["cache"] = False
        assert [ask(index, "Which?").text for _ in range(2)] == ["no", "no"]
        index.llm_parameters["cache"] = True
        assert ask(index, "Which?").text == "yes"


@pytest.mark.django_db
class TestNaming:
    def test_servers_are_those_of_the_settings(self, server: LLMServer, settings: Any) -> None:
        assert list(servers()) == ["ollama", "openai"]
        settings.BENCHBENCH_LLM_SERVERS = ["http://somewhere"]
        with pytest.raises(ImproperlyConfigured, match="is not NAME=KIND"):
            servers()

    @pytest.mark.parametrize(
        ("stated", "said"),
        [
            ({}, "its strategy asks a language model, and none is named"),
            (
                {"llm": MODEL, "llm_parameters": {"provider": "cloud"}},
                "cloud is not known here, known are ollama, openai",
            ),
            (
                {"llm": MODEL, "llm_parameters": {"provider": "ollama", "base_url": "http://evil"}},
                "ollama has another address here than http://evil",
            ),
        ],
    )
    def test_what_is_not_here_is_refused(
        self, fruit: Collection, server: LLMServer, stated: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(UnavailableError, match=said):
            create_index(fruit, name="asked", encoder="keyword:apple", strategy="lod_llm", **stated)

    def test_parameters_are_complete_and_of_their_types(self, fruit: Collection, server: LLMServer) -> None:
        parameters = {"provider": "ollama", "base_url": server.url + "/", "temperature": 1, "max_tokens": None}
        stated = {"llm": MODEL, "llm_parameters": parameters}
        made = create_index(fruit, name="asked", encoder="keyword:apple", strategy="lod_llm", **stated)
        complete = {"provider": "ollama", "temperature": 1.0, "max_tokens": 500, "seed": 0, "cache": True}
        assert made.llm_parameters == complete
        for wrong in ({"temperature": "0"}, {"seed": True}, {"stop": "."}):
            with pytest.raises(LLMError, match="Parameters of a language model are"):
                checked_llm({"provider": "ollama", **wrong})

    def test_a_strategy_that_asks_none_is_given_none(self, fruit: Collection, server: LLMServer) -> None:
        with pytest.raises(IndexingError, match="The strategy flat asks no language model"):
            create_index(fruit, name="asked", llm=MODEL)

    def test_without_servers_it_says_what_is_missing(self, fruit: Collection) -> None:
        with pytest.raises(UnavailableError, match="the settings name none"):
            create_index(fruit, name="asked", encoder="keyword:apple", strategy="lod_llm", llm=MODEL)


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("sec_1", [0]),
        ("sec_11, sec_1.", [1, 0]),
        ("The best is a/b.md; then `a`, then a again", [3, 2]),
        ("sec_111, xsec_1, sec_1-2, a/b, a.b, sec_1/x", []),
        ("(sec_1)\n- a", [0, 2]),
        ("SEC_1", []),
        ("", []),
    ],
)
def test_names_count_as_whole_tokens(answer: str, places: list[int]) -> None:
    assert picked(answer, ["sec_1", "sec_11", "a", "a/b.md"]) == places


def test_sections_that_are_called_alike_are_told_apart() -> None:
    ids = [("A", "s1"), ("B", "s1"), ("B", "s2"), ("C", "")]
    assert labels(ids, with_sections=True) == ["A/s1", "B/s1", "s2", "C"]
    assert picked("A/s1, B", labels(ids, with_sections=True)) == [0]
    assert labels([("A", ""), ("B", "")], with_sections=False) == ["A", "B"]


@pytest.mark.django_db
class TestKnownAnswers:
    """What a reader can work out by hand (tests/retrieval/words.py)."""

    @pytest.fixture
    def words(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: LLMServer, built: Any) -> Index:
        monkeypatch.setitem(ENCODERS, "bag:", BagOfWords)
        stated = {"strategy": "lod_llm", "llm": MODEL, "chunk_parameters": {"doc_top_k": 1}}
        return built(import_words(tmp_path), encoder=BAG, **stated)

    def test_the_model_picks_documents_then_sections(self, words: Index, server: LLMServer) -> None:
        server.answer = lambda prompt: "C" if "documents" in prompt else "sec_3"
        answer = asked(words)
        assert hits(words, answer) == [("C", "sec_3", 0.7071)]
        calls = answer.calls
        assert (calls.embed, calls.llm, calls.llm_cached, calls.fallback_used) == (1, 2, 0, False)
        documents, sections = (request["messages"][0]["content"] for request in server.asked)
        assert "- B: beta doc beta\n" in documents
        assert "- sec_1: H gamma zeta\n- sec_3: U beta zeta\n" in sections
        assert asked(words).calls.llm_cached == 2
        assert len(server.asked) == 2

    def test_where_it_names_nothing_the_nearest_are_gone_on_with(self, words: Index, server: LLMServer) -> None:
        server.answer = lambda prompt: "none" if "documents" in prompt else "nothing"
        answer = asked(words)
        assert hits(words, answer)[0] == ("B", "sec_1", 0.8944)
        assert (answer.calls.llm, answer.calls.fallback_used) == (2, True)

    def test_only_what_is_offered_counts(self, words: Index, server: LLMServer) -> None:
        server.answer = lambda prompt: "D, C" if "documents" in prompt else "sec_2, sec_1"
        assert hits(words, asked(words)) == [("C", "sec_1", 0.0)]


def asked(index: Index) -> Answer:
    opened = open_index(index)
    return opened.answers(opened.encode(["beta"]), 3, texts=["beta"])[0]
