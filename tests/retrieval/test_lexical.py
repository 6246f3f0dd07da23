"""Search by words: BM25 in memory and as stored, and PostgreSQL's full text."""

import io
import os
import random
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import bm25s
import numpy as np
import pytest
import Stemmer
from bm25s.stopwords import STOPWORDS_EN
from django.apps import apps

from apps.retrieval.analysis import analyzers
from apps.retrieval.analysis.analyzers import build_analyzer
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.deleting import delete_index
from apps.retrieval.models import ChunkSet, Index, LexicalIndex
from apps.retrieval.search import lexical_indexes, term_counts
from apps.retrieval.search.full_text import find_full_text, make_full_text, search_full_text
from apps.retrieval.search.lexical import K1, B, Bm25
from apps.retrieval.search.lexical_indexes import (
    LexicalIndexError,
    load_lexical_index,
    locate_lexical_index,
    make_lexical_index,
)
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.term_counts import write_bm25
from apps.retrieval.search.words import SearchError, describe_missing_words, make_words, read_terms
from benchbench.ir.planning.lexical import WORDS, Lexical
from benchbench.ir.records import ScoredList
from tests.factories import make_collection

pytestmark = pytest.mark.django_db

ENGLISH = build_analyzer("english", "plain")
OPTIONS = {  # of bm25s.tokenize, for the words of English
    "token_pattern": r"(?u)\b\w\w+\b",
    "stopwords": STOPWORDS_EN,
    "stemmer": Stemmer.Stemmer("english", 0),
    "show_progress": False,
}
TEXTS = ["Apples and pears", "An apple, an apple: three apples", "Running dogs run", "", "Über die Brücke gehen"]


def archive(texts):
    out = io.BytesIO()
    write_bm25(texts, out, ENGLISH)
    return out.getvalue()


def build(texts):
    return Bm25.from_archive(np.frombuffer(archive(texts), np.uint8), ENGLISH)


@pytest.fixture(scope="module")
def index():
    return build(TEXTS)


def test_search_finds_only_chunks_sharing_a_word(index):
    apples, nothing, stop_words, empty = index.search(["apples", "zebra", "and the", ""], 10)
    assert sorted(apples.ids.tolist()) == [0, 1]
    assert [nothing, stop_words, empty] == [ScoredList.empty()] * 3


def test_words_meet_by_their_stems_in_any_case(index):
    assert [hit.ids.tolist() for hit in index.search(["APPLE pear", "runs", "über"], 1)] == [[0], [2], [4]]


def test_scores_are_those_of_lucenes_formula():
    texts = ["fox", "fox fox hound", "hound cat cat cat"]
    lengths, mean = [1, 3, 4], 8 / 3
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))

    def expected(tf, length):
        return idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * length / mean))

    result = build(texts).search(["fox"], 10)[0]
    assert dict(zip(result.ids.tolist(), result.scores.tolist(), strict=True)) == pytest.approx(
        {0: expected(1, lengths[0]), 1: expected(2, lengths[1])}, rel=1e-6
    )


def test_a_repeated_query_word_counts_again(index):
    once, twice = index.search(["pears", "pears pear"], 1)
    assert twice.scores[0] == 2 * once.scores[0]


def test_equal_scores_rank_by_position():
    assert build(["same words"] * 5).search(["words"], 3)[0].ids.tolist() == [0, 1, 2]


def test_a_mask_admits_chunks_before_they_are_ranked(index):
    assert index.search(["apples"], 1, mask=np.array([True, False, True, True, True]))[0].ids.tolist() == [0]


def test_query_results_are_bit_identical_in_any_batch(index):
    queries = ["apples dogs", "running pears bridge", "apple apple dog", "über brücke"]
    assert index.search(queries, 5) == [index.search([query], 5)[0] for query in queries]
    assert index.search([], 5) == []


@pytest.mark.parametrize("texts", [[], ["", ""], ["the and of"]])
def test_texts_without_words_make_an_index_that_finds_nothing(texts):
    index = build(texts)
    assert index.count == len(texts)
    assert index.search(["apple"], 5) == [ScoredList.empty()]


def reference(texts, k1=K1, b=B):
    """Return the postings of each term as bm25s computes them, from all texts at once."""
    engine = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float32")
    engine.index(bm25s.tokenize(texts, **OPTIONS), show_progress=False)
    scores, indices, starts = (engine.scores[name] for name in ("data", "indices", "indptr"))
    terms = {term: number for term, number in engine.vocab_dict.items() if term}  # bm25s adds the empty one
    spans = {term: slice(starts[number], starts[number + 1]) for term, number in terms.items()}
    return {term: (indices[span].tolist(), scores[span].tobytes()) for term, span in spans.items()}


def postings(index):
    hits = {term: index.read_postings(number) for term, number in index.terms.items()}
    return {term: (positions.tolist(), impacts.tobytes()) for term, (positions, impacts) in hits.items()}


def random_texts(count):
    """Return texts of words as frequent as in a language, of none to 400 words."""
    draw = random.Random(7)
    words = ["the", "running", "runs", "Über", "naïve", "東京", "x", "ﬁsh", "don't", "a_b", "İstanbul", "٣٤", "ΟΔΟΣ"]
    words += [f"word{number}" for number in range(500)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    draw.shuffle(weights)
    return [" ".join(draw.choices(words, weights, k=draw.choice([0, 1, 5, 60, 400]))) for _ in range(count)]


@pytest.mark.parametrize(
    ("block", "merged", "count"), [(2**24, 2**22, 200), (5_000, 1_000, 200), (1, 1, 20), (2_000, 2**22, 200)]
)
def test_blocks_give_the_scores_of_bm25s_bit_for_bit(monkeypatch, block, merged, count):
    texts = random_texts(count)
    complete = archive(texts)
    monkeypatch.setattr(term_counts, "BLOCK_CHARACTERS", block)
    monkeypatch.setattr(term_counts, "MERGED_POSTINGS", merged)
    assert postings(build(texts)) == reference(texts)
    assert archive(iter(texts)) == complete


@pytest.mark.parametrize(("k1", "b"), [(k1, b) for k1 in (0.0, 0.9, 1.2, 3.0) for b in (0.0, 0.4, 1.0)])
def test_one_index_serves_all_k1_and_b(k1, b):
    texts = random_texts(100)
    assert postings(build(texts).tune(k1, b)) == reference(texts, k1, b)


def test_it_is_an_archive_of_numpy(index):
    """As indexes stored before are, which `numpy.savez` wrote."""
    with np.load(io.BytesIO(archive(TEXTS))) as arrays:
        second = io.BytesIO()
        np.savez(second, **arrays)
    again = Bm25.from_archive(np.frombuffer(second.getvalue(), np.uint8), ENGLISH)
    assert again.search(["apples dogs"], 5) == index.search(["apples dogs"], 5)
    assert (again.terms, again.count) == (index.terms, 5)


def test_every_process_builds_the_same_bytes():
    program = (
        "import sys, ast, io; from apps.retrieval.search.term_counts import write_bm25; "
        "from apps.retrieval.analysis.analyzers import build_analyzer; out = io.BytesIO(); "
        "write_bm25(ast.literal_eval(sys.argv[1]), out, build_analyzer('english', 'plain')); "
        "sys.stdout.buffer.write(out.getvalue())"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, repr(TEXTS)],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )
    assert process.stdout == archive(TEXTS)


@pytest.fixture
def stored(db, monkeypatch):
    monkeypatch.setattr(lexical_indexes, "PIECE_BYTES", 500)
    collection = make_collection(documents=[{"text": "red apple"}, {"text": "green pear"}, {"text": "red pear"}])
    return make_lexical_index(make_chunk_set(collection, strategy="flat", parameters={}))


def test_it_is_loaded_as_it_was_stored(stored):
    assert stored.pieces.count() == -(-stored.size_bytes // 500) > 2
    assert load_lexical_index(stored).search(["apples"], 5)[0].ids.tolist() == [0]
    assert postings(load_lexical_index(stored)) == reference(["red apple", "green pear", "red pear"])


@pytest.mark.parametrize(("language", "has_rules"), [("german", True), ("english", True), ("", False)])
def test_indexes_of_other_rules_are_refused(language, has_rules, db, monkeypatch):
    collection = make_collection(documents=[{"text": "red apple"}])
    chunk_set = make_chunk_set(collection, strategy="flat", parameters={})
    setting = Lexical.parse(f"bm25(language={language})" if language else "bm25(words=plain)")
    stored = make_lexical_index(chunk_set, setting)
    monkeypatch.setattr(lexical_indexes, "RULES", lexical_indexes.RULES - 1)
    if not has_rules:
        assert load_lexical_index(stored).count == 1
        return
    with pytest.raises(LexicalIndexError, match="another version of BenchBench"):
        load_lexical_index(stored)
    assert make_lexical_index(chunk_set, setting) != stored


def test_terms_by_a_stemmer_gone_are_unknown(db):
    collection = make_collection(documents=[{"text": "червена ябълка"}])
    chunk_set = make_chunk_set(collection, strategy="flat", parameters={})
    stored = make_lexical_index(chunk_set, Lexical.parse("bm25(language=bulgarian, words=unicode)"))
    stored.parameters["analyzer"]["stem"] = "light bulgarian"
    index = Index(chunk_set=chunk_set, lexical_index=stored)
    assert read_terms(index, Lexical(), ["червени ябълки"]) is None


def test_stored_indexes_of_saturations_are_written_again(stored):
    load_lexical_index(stored)
    written = stored.size_bytes
    stored.pieces.filter(ordinal__gt=0).delete()
    LexicalIndex.objects.update(size_bytes=500, fingerprint="of the first format")
    stored.refresh_from_db()
    with pytest.raises(
        LexicalIndexError,
        match=r"another version of BenchBench, or of a package of its analyzer, built it\. Make a new version of the",
    ):
        load_lexical_index(stored)
    import_module("apps.retrieval.migrations.0006_untuned_postings").rebuild(apps, None)
    stored.refresh_from_db()
    assert stored.size_bytes == written
    assert postings(load_lexical_index(stored)) == reference(["red apple", "green pear", "red pear"])


def test_its_mapped_file_is_rewritten_if_damaged(stored):
    index = load_lexical_index(stored)
    assert isinstance(index.codes.base.base, np.memmap)
    file = locate_lexical_index(stored)
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"!" + content[101:])
    assert postings(load_lexical_index(stored)) == postings(index)
    assert file.read_bytes() == content


def test_its_file_goes_with_its_last_index(fruit, built, django_capture_on_commit_callbacks):
    one, second = built(fruit, name="one"), built(fruit, name="other")
    file = locate_lexical_index(one.lexical_index)
    open_index(second).words.prepare(Lexical())
    for index, exists in ((one, True), (second, False)):
        with django_capture_on_commit_callbacks(execute=True):
            delete_index(index)
        assert file.exists() == exists


def test_it_is_built_once_for_a_chunk_set(stored):
    assert make_lexical_index(stored.chunk_set) == stored


def test_a_damaged_piece_is_named(stored):
    piece = stored.pieces.get(ordinal=1)
    piece.data = b"!" + bytes(piece.data)[1:]
    piece.save()
    with pytest.raises(LexicalIndexError, match="piece 1 is damaged"):
        load_lexical_index(stored)


@pytest.mark.parametrize(("position", "message"), [(1, "piece 1 is missing"), (-1, "bytes were found")])
def test_a_missing_piece_is_named(stored, position, message):
    list(stored.pieces.order_by("ordinal"))[position].delete()
    with pytest.raises(LexicalIndexError, match=message):
        load_lexical_index(stored)


@pytest.fixture
def opened(fruit, built):
    opened = open_index(built(fruit, lexical=False))
    make_full_text(opened.index.chunk_set)
    return opened


def search_names(opened, *texts, depth=10, filters=None):
    names = np.array(list("abcde"))
    return ["".join(names[one.ids]) for one in opened.search_words(texts, depth, filters, lexical="fts")]


class TestSearching:
    def test_it_ranks_by_words_any_of_which_will_do(self, opened):
        assert search_names(opened, "plums", "the pears", "Apples, or plums?") == [
            "d",
            "cb",
            "dab",
        ]  # d is the shortest

    def test_a_query_without_words_finds_nothing(self, opened):
        assert search_names(opened, "what is the", "", "fig", "!") == ["", "", "", ""]

    @pytest.mark.parametrize(
        "text", ["pear's", "pear & !plum | <->", "a\\b pear", "100% pear", "http://x.org/a?b&c pear"]
    )
    def test_nothing_in_a_query_is_syntax(self, opened, text):
        assert "c" in search_names(opened, text)[0]

    def test_equal_scores_rank_by_position(self, fruit, built):
        twins = make_collection("twins", [{"external_id": key, "text": "one pear"} for key in "cab"])
        (ranked,) = search_full_text(make_full_text(built(twins).chunk_set), ["pear"], 2)
        assert ranked.ids.tolist() == [0, 1]
        assert ranked.scores[0] == ranked.scores[1] > 0

    def test_filters_apply_before_ranking(self, opened):
        filters = [{"colour": "red"}, {}, {"colour": "green", "size": 2}, {"colour": "blue"}]
        assert search_names(opened, *["pear"] * 4, depth=1, filters=filters) == ["b", "c", "c", ""]

    def test_lists_do_not_depend_on_the_batch(self, opened):
        texts = ["apple", "pear plum", "nothing of the kind", ""]
        alone = [opened.search_words([text], 5, lexical="fts")[0] for text in texts]
        assert opened.search_words(texts, 5, lexical="fts") == alone

    def test_one_that_is_not_made_says_so(self, fruit, built):
        with pytest.raises(SearchError, match="are not indexed for fts: start a benchmark with it"):
            search_names(open_index(built(fruit)), "pear")


def test_settings_of_bm25_search_one_stored_index(fruit, built):
    opened = open_index(built(fruit))
    (tuned,) = opened.search_words(["red pear"], 5, lexical="bm25(k1=0.9, b=0.4)")
    assert tuned == opened.words.load_bm25(Lexical.parse("bm25(k1=0.9, b=0.4)")).search(["red pear"], 5)[0]
    assert tuned != opened.search_words(["red pear"], 5, lexical="bm25")[0]
    assert LexicalIndex.objects.count() == 1


GERMAN = "bm25(language=german)"


class TestOtherAnalyzers:
    """A benchmark indexes the words of an analyzer other than that of the index."""

    @pytest.fixture
    def opened(self, built):
        texts = ["Die Häuser", "the houses", "Haus"]
        return open_index(built(make_collection(documents=[{"text": text} for text in texts])))

    def search(self, opened, text, lexical):
        return opened.search_words([text], 5, lexical=lexical)[0].ids.tolist()

    def test_one_that_is_not_made_says_so(self, opened):
        with pytest.raises(SearchError, match=r"not indexed for bm25\(language=german\): start a benchmark with it"):
            self.search(opened, "haus", GERMAN)

    def test_queries_and_documents_are_read_by_the_same_chain(self, opened):
        make_words(opened.index.chunk_set, Lexical.parse(GERMAN))
        assert self.search(opened, "Häuser", GERMAN) == [0, 2]
        assert self.search(opened, "Häuser", "bm25") == [0]
        make_words(opened.index.chunk_set, Lexical.parse("bm25(stop=none)"))
        assert (self.search(opened, "the", "bm25(stop=none)"), self.search(opened, "the", "bm25")) == ([1], [])

    def test_settings_with_equal_words_share_an_index(self, opened):
        chunk_set = opened.index.chunk_set
        first, second = (make_words(chunk_set, Lexical.parse(text)) for text in (GERMAN, "bm25(language=de, k1=0.9)"))
        assert first == second
        assert make_words(chunk_set, Lexical.parse("bm25(language=english)")) == opened.index.lexical_index

    def test_full_text_takes_another_language(self, opened):
        make_words(opened.index.chunk_set, Lexical.parse("fts(language=german)"))
        assert self.search(opened, "haus", "fts(language=german)") == [0, 2]

    def test_they_go_with_the_last_index_that_has_bm25(self, opened, built, django_capture_on_commit_callbacks):
        index = opened.index
        built(index.collection, name="vectors", lexical=False)
        german = make_words(index.chunk_set, Lexical.parse(GERMAN))
        opened.words.load_bm25(Lexical.parse(GERMAN))
        second = built(index.collection, name="second")
        with django_capture_on_commit_callbacks(execute=True):
            delete_index(second)
        assert LexicalIndex.objects.filter(pk=german.pk).exists()
        assert locate_lexical_index(german).exists()
        with django_capture_on_commit_callbacks(execute=True):
            delete_index(index)
        assert not LexicalIndex.objects.exists()
        assert not locate_lexical_index(german).exists()

    def test_a_changed_file_is_checked_again(self, opened):
        words = make_words(opened.index.chunk_set, Lexical.parse(GERMAN))
        opened.words.load_bm25(Lexical.parse(GERMAN))
        assert opened.is_current
        os.utime(locate_lexical_index(words), (0, 0))
        assert not opened.is_current


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("bm25(language=german)", ""),
        ("bm25(stop=chinese)", "no package here has stop words of chinese: use stop=none"),
        ("bm25(stem=chinese)", "no stemmer reads chinese: use stem=none"),
        ("bm25(words=sudachipy)", "words=sudachipy needs sudachipy: pip install 'benchbench[sudachipy]'"),
        ("fts(language=german)", ""),
        ("fts(language=chinese)", "PostgreSQL has no full text for chinese: use bm25(language=chinese)"),
    ],
)
def test_missing_parts_are_described_with_a_remedy(setting, sentence, monkeypatch):
    monkeypatch.setattr(analyzers, "find_spec", lambda module: None if module == "sudachipy" else module)
    assert describe_missing_words(setting) == sentence


def test_declared_and_built_ways_of_words_are_equal():
    assert set(WORDS) == set(analyzers.WORDS)


class TestMaking:
    def test_indexes_with_equal_chunks_share_one_full_text(self, fruit, built):
        one, second = built(fruit, name="one"), built(fruit, name="other")
        full_text = make_full_text(one.chunk_set)
        assert full_text.size_bytes > 0
        assert make_full_text(second.chunk_set) == full_text

    def test_it_goes_with_the_last_index_of_its_chunks(self, fruit, built):
        one, second = built(fruit, name="one"), built(fruit, name="other")
        words = make_full_text(one.chunk_set)
        delete_index(one)
        assert search_full_text(words, ["pear"], 5)[0].ids.tolist() == [2, 1]
        delete_index(second)
        assert not LexicalIndex.objects.exists()
        assert not ChunkSet.objects.exists()

    def test_chunk_with_too_many_words_raises_a_helpful_error(self, built):
        endless = " ".join(f"word{number}" for number in range(150_000))
        index = built(make_collection("long", [{"external_id": "a", "text": endless}]))
        with pytest.raises(LexicalIndexError, match="Split the documents into smaller chunks"):
            make_full_text(index.chunk_set)
        assert find_full_text(index.chunk_set) is None
