import numpy as np
import pytest

from apps.retrieval.deleting import delete_index
from apps.retrieval.models import ChunkSet, LexicalIndex
from apps.retrieval.search.full_text import find_full_text, make_full_text, search_full_text
from apps.retrieval.search.lexical_indexes import LexicalIndexError
from apps.retrieval.search.open_indexes import SearchError, open_index
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


@pytest.fixture
def opened(fruit, built):
    opened = open_index(built(fruit, lexical=False))
    make_full_text(opened.index.chunk_set)
    return opened


def found(opened, *texts, depth=10, filters=None):
    names = np.array(list("abcde"))
    return ["".join(names[one.ids]) for one in opened.lexical(texts, depth, filters, engine="fts")]


class TestSearching:
    def test_it_ranks_by_words_any_of_which_will_do(self, opened):
        assert found(opened, "plums", "the pears", "Apples, or plums?") == ["d", "cb", "dab"]  # d is the shortest

    def test_a_query_without_words_finds_nothing(self, opened):
        assert found(opened, "what is the", "", "fig", "!") == ["", "", "", ""]

    @pytest.mark.parametrize(
        "text", ["pear's", "pear & !plum | <->", "a\\b pear", "100% pear", "http://x.org/a?b&c pear"]
    )
    def test_nothing_in_a_query_is_syntax(self, opened, text):
        assert "c" in found(opened, text)[0]

    def test_equal_scores_rank_by_position(self, fruit, built):
        twins = make_collection("twins", [{"external_id": key, "text": "one pear"} for key in "cab"])
        words = make_full_text(built(twins).chunk_set)
        (ranked,) = search_full_text(words, ["pear"], 2)
        assert ranked.ids.tolist() == [0, 1]
        assert ranked.scores[0] == ranked.scores[1] > 0

    def test_filters_apply_before_ranking(self, opened):
        filters = [{"colour": "red"}, {}, {"colour": "green", "size": 2}, {"colour": "blue"}]
        assert found(opened, *["pear"] * 4, depth=1, filters=filters) == ["b", "c", "c", ""]

    def test_a_list_is_the_same_alone_and_in_a_batch(self, opened):
        texts = ["apple", "pear plum", "nothing of the kind", ""]
        alone = [opened.lexical([text], 5, engine="fts")[0] for text in texts]
        assert opened.lexical(texts, 5, engine="fts") == alone

    def test_one_that_is_not_made_says_so(self, fruit, built):
        with pytest.raises(SearchError, match="are not indexed for full-text search"):
            found(open_index(built(fruit)), "pear")


class TestMaking:
    def test_it_is_made_once_for_the_indexes_that_chunk_alike(self, fruit, built):
        one, other = built(fruit, name="one"), built(fruit, name="other")
        made = make_full_text(one.chunk_set)
        assert made.size_bytes > 0
        assert make_full_text(other.chunk_set) == made

    def test_it_goes_with_the_last_index_of_its_chunks(self, fruit, built):
        one, other = built(fruit, name="one"), built(fruit, name="other")
        words = make_full_text(one.chunk_set)
        delete_index(one)
        assert search_full_text(words, ["pear"], 5)[0].ids.tolist() == [2, 1]
        delete_index(other)
        assert not LexicalIndex.objects.exists()
        assert not ChunkSet.objects.exists()

    def test_a_chunk_with_too_many_words_is_an_error_that_says_what_to_do(self, built):
        endless = " ".join(f"word{number}" for number in range(150_000))
        index = built(make_collection("long", [{"external_id": "a", "text": endless}]))
        with pytest.raises(LexicalIndexError, match="cut the documents into smaller chunks"):
            make_full_text(index.chunk_set)
        assert find_full_text(index.chunk_set) is None
