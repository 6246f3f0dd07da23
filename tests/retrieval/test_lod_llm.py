"""The strategy that has a language model pick documents, then sections: how its answers are read."""

import time

import pytest

from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.llms import asking
from apps.retrieval.models import LLMAnswer
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.strategies.lod import build_labels, parse_picks
from tests.retrieval.llm_server import MODEL
from tests.retrieval.opened import hits
from tests.retrieval.words import BAG, BagOfWords, import_words


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
def test_names_count_as_whole_tokens(answer, places):
    assert parse_picks(answer, ["sec_1", "sec_11", "a", "a/b.md"]) == places


def test_sections_with_equal_names_get_distinct_labels():
    ids = [("A", "s1"), ("B", "s1"), ("B", "s2"), ("C", "")]
    assert build_labels(ids, with_sections=True) == ["A/s1", "B/s1", "s2", "C"]
    assert parse_picks("A/s1, B", build_labels(ids, with_sections=True)) == [0]
    assert build_labels([("A", ""), ("B", "")], with_sections=False) == ["A", "B"]


@pytest.mark.django_db
class TestKnownAnswers:
    """What a reader can work out by hand (tests/retrieval/words.py)."""

    @pytest.fixture
    def words(self, tmp_path, monkeypatch, server, built):
        monkeypatch.setitem(ENCODERS, "bag:", BagOfWords)
        fields = {"strategy": "lod_llm", "llm": MODEL, "chunk_parameters": {"doc_top_k": 1}}
        return built(import_words(tmp_path), encoder=BAG, **fields)

    def test_the_model_picks_documents_then_sections(self, words, server):
        server.answer = lambda prompt: "C" if "documents" in prompt else "sec_3"
        answer = search_beta(words)
        assert hits(words, answer) == [("C", "sec_3", 0.7071)]
        calls = answer.calls
        assert (calls.embed, calls.llm, calls.llm_cached, calls.fallback_used) == (1, 2, 0, False)
        documents, sections = (request["messages"][0]["content"] for request in server.asked)
        assert "- B: beta doc beta\n" in documents
        assert "- sec_1: H gamma zeta\n- sec_3: U beta zeta\n" in sections
        assert search_beta(words).calls.llm_cached == 2
        assert len(server.asked) == 2

    def test_kept_answers_keep_times(self, words, server, monkeypatch):
        """And not what looking it up takes: a thousand seconds, by this clock."""
        search_beta(words)
        LLMAnswer.objects.update(ms=3_000_000)
        clock, find, late = time.perf_counter, asking.find_answer, []
        monkeypatch.setattr(time, "perf_counter", lambda: clock() + 1000 * len(late))
        monkeypatch.setattr(asking, "find_answer", lambda key: late.append(1) or find(key))
        assert search_beta(words).ms == pytest.approx(6_000_000, abs=500_000)
        assert len(late) == 2

    def test_answers_naming_nothing_fall_back_to_the_nearest(self, words, server):
        server.answer = lambda prompt: "none" if "documents" in prompt else "nothing"
        answer = search_beta(words)
        assert hits(words, answer)[0] == ("B", "sec_1", 0.8944)
        assert (answer.calls.llm, answer.calls.fallback_used) == (2, True)

    @pytest.mark.parametrize(("answer", "cached"), [("none", 2), (" \n", 0)])
    def test_an_empty_answer_is_asked_again(self, words, server, answer, cached):
        """A text that names nothing is what the model says, an empty one what an ill server says."""
        server.answer = lambda prompt: answer
        assert search_beta(words).calls.fallback_used
        server.answer = lambda prompt: "C" if "documents" in prompt else "sec_3"
        again = search_beta(words)
        assert (again.calls.llm_cached, again.calls.fallback_used) == (cached, cached > 0)

    def test_only_offered_choices_count(self, words, server):
        server.answer = lambda prompt: "D, C" if "documents" in prompt else "sec_2, sec_1"
        assert hits(words, search_beta(words)) == [("C", "sec_1", 0.0)]


def search_beta(index):
    opened = open_index(index)
    return opened.find_answers(opened.encode(["beta"]), 3, texts=["beta"])[0]
