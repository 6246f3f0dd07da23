"""Presets on real servers: Typesense, Groonga, Datasette and Chroma."""

from typing import Any

import pytest

from apps.engines.errors import EngineError
from apps.engines.storing import Reply
from apps.retrieval.encoders.registry import KeywordEncoder
from tests.engines.search_servers import (  # noqa: F401 (fixtures)
    KEYWORDS,
    TYPESENSE_KEY,
    WITH_APPLES,
    chroma,
    datasette,
    groonga,
    typesense,
)

pytestmark = [pytest.mark.thorough, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TYPESENSE_KEY", TYPESENSE_KEY)


def ids(outcome):
    assert isinstance(outcome, Reply), outcome
    return [hit.id for hit in outcome.hits]


def sentence(outcome):
    assert isinstance(outcome, EngineError), outcome
    return str(outcome)


class TestTypesense:
    @pytest.fixture
    def shop(self, typesense: str) -> dict[str, Any]:  # noqa: F811
        variables = {"address": typesense, "collection": "fruit", "query_by": "title,text", "title": "title"}
        return {"preset": "typesense", "variables": variables, "secret": "TYPESENSE_KEY"}

    def test_pages_continue_one_order(self, ask, shop):
        reply = ask("apple", 25, page_size=10, **shop)
        assert ids(reply) == WITH_APPLES[:25]
        assert reply.total == 30
        assert (reply.hits[0].title, reply.hits[0].snippet) == ("Basket 1", "apple apple apple apple apple")

    def test_the_last_page_may_be_short(self, ask, shop):
        assert ids(ask("apple", 100, page_size=8, **shop)) == WITH_APPLES

    def test_parameters_reach_the_server(self, ask, shop):
        assert ids(ask("xpple", 3, **shop)) == WITH_APPLES[:3]
        assert ids(ask("xpple", 3, setting="tried(num_typos=0)", **shop)) == []

    def test_wrong_names_are_clear_errors(self, ask, shop):
        shop["variables"]["collection"] = "nuts"
        missing = sentence(ask("apple", 3, **shop))
        assert "404" in missing
        assert "Not found" in missing

    def test_a_wrong_key_is_refused_without_being_shown(self, ask, shop, monkeypatch):
        monkeypatch.setenv("TYPESENSE_KEY", "quite-another-key")
        refused = sentence(ask("apple", 3, **shop))
        assert "401" in refused
        assert "quite-another-key" not in refused


class TestGroonga:
    @pytest.fixture
    def table(self, groonga: str) -> dict[str, Any]:  # noqa: F811
        variables = {
            "address": groonga,
            "table": "Fruit",
            "columns": "title * 2 || text",
            "title": "title",
            "text": "text",
        }
        return {"preset": "groonga", "variables": variables}

    def test_any_word_finds_and_pages(self, ask, table):
        reply = ask("apple quince", 25, page_size=10, **table)
        assert ids(reply) == WITH_APPLES[:25]
        assert (reply.total, reply.hits[0].score, reply.hits[0].title) == (30, 30.0, "Basket 1")

    @pytest.mark.parametrize("text", ['"apple', "apple)", "@text:(apple", "apple \\", "-apple* OR <>"])
    def test_words_are_no_syntax(self, ask, table, text):
        assert ids(ask(text, 3, **table)) == WITH_APPLES[:3]

    def test_no_match_is_an_empty_ranking(self, ask, table):
        assert ids(ask("quince", 10, **table)) == []

    def test_a_missing_table_is_a_clear_error(self, ask, table):
        assert "invalid name: <Nuts>" in sentence(
            ask("apple", 3, **table | {"variables": table["variables"] | {"table": "Nuts"}})
        )


class TestDatasette:
    @pytest.fixture
    def canned(self, datasette: str) -> dict[str, Any]:  # noqa: F811
        variables = {"address": datasette, "database": "shop", "canned_query": "search"}
        return {"preset": "datasette", "variables": variables}

    def test_any_word_finds_and_pages(self, ask, canned):
        reply = ask("apple quince", 25, page_size=10, **canned)
        assert ids(reply) == WITH_APPLES[:25]
        scores = [hit.score for hit in reply.hits]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > 0
        assert (reply.hits[0].title, reply.hits[0].snippet[:11]) == ("Basket 1", "apple apple")

    @pytest.mark.parametrize("text", ['"apple', "apple)", "text:apple", "apple*", "NEAR(apple"])
    def test_words_are_no_syntax(self, ask, canned, text):
        assert ids(ask(text, 3, **canned)) == WITH_APPLES[:3]

    def test_rows_cut_off_are_an_error(self, ask, canned):
        """The server returns 20 rows at most, and says that exist more."""
        assert "truncated" in sentence(ask("apple", 25, page_size=25, **canned))

    def test_a_missing_query_is_a_clear_error(self, ask, canned):
        assert "404" in sentence(
            ask("apple", 3, **canned | {"variables": canned["variables"] | {"canned_query": "nuts"}})
        )


class TestChroma:
    @pytest.fixture
    def vectors(self, chroma: tuple[str, str]) -> dict[str, Any]:  # noqa: F811
        names = {"tenant": "default_tenant", "database": "default_database"}
        variables = {"address": chroma[0], "collection_id": chroma[1], **names}
        return {"preset": "chroma", "variables": variables, "encoder": KEYWORDS}

    def test_parallel_lists_are_hits(self, ask, vectors):
        vector = KeywordEncoder(KEYWORDS).embed_batch(["apple"])[0].tolist()
        reply = ask("apple", 25, vector=vector, **vectors)
        assert ids(reply) == WITH_APPLES[:4:-1]
        assert (reply.hits[0].title, reply.hits[0].score) == ("Basket 30", None)

    def test_a_query_has_one_page(self, ask, vectors):
        with pytest.raises(EngineError, match="gives at most 10 hits, not 25"):
            ask("apple", 25, vector=[1.0, 0.0, 0.0], page_size=10, **vectors)

    def test_a_missing_collection_is_a_clear_error(self, ask, vectors):
        vectors["variables"]["collection_id"] = "00000000-0000-4000-8000-000000000000"
        assert "404" in sentence(ask("apple", 3, vector=[1.0, 0.0, 0.0], **vectors))
