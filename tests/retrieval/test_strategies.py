"""Strategies: the contract that each keeps, their parameters, and searches with known answers."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest

from apps.collections.models import Section
from apps.collections.records import DocumentRecord, SectionRecord
from apps.retrieval.models import Chunk
from apps.retrieval.search.approximate import pgvector
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.strategies import STRATEGIES, StrategyError, get_strategy
from apps.retrieval.strategies.base import Piece
from benchbench.ir.chunking import ChunkingError
from benchbench.ir.planning.ann import Ann
from tests.retrieval.arms import require_installed
from tests.retrieval.llm_server import MODEL
from tests.retrieval.opened import dense, hits, search_beta
from tests.retrieval.words import BAG

TEXT = "Some words that are cut. " * 9
SECTIONS = [SectionRecord("one", "Some words", 1, 0, 60), SectionRecord("two", "Cut", 1, 75, 200)]
DOCUMENT = DocumentRecord("d", "Title", TEXT, sections=SECTIONS)
BY_SECTION = {"size": 500, "overlap": 50, "sections": True}


def cut(strategy, document, parameters):
    return strategy.add_levels(document, strategy.cut_chunks(document, parameters))


@pytest.mark.parametrize("name", STRATEGIES)
class TestAStrategy:
    """The contract of a strategy."""

    def test_checked_parameters_stay_as_they_are(self, name):
        strategy = get_strategy(name)
        for parameters in ({}, {"size": 100}, {"size": 100, "overlap": 5}):
            if name != "flat" or parameters:
                parameters = {"overlap": 0, **parameters}
                parameters.setdefault("size", 100)
            checked = strategy.check(parameters)
            assert strategy.check(checked) == checked
            assert strategy.of_search <= checked.keys()

    def test_pieces_are_repeatable_and_lie_within_the_text(self, name):
        strategy = get_strategy(name)
        parameters = strategy.check({"size": 20, "overlap": 5})
        pieces = cut(strategy, DOCUMENT, parameters)
        assert pieces == cut(strategy, DOCUMENT, parameters)
        assert all(0 <= piece.start <= piece.end <= len(TEXT) and piece.text for piece in pieces)
        assert {piece.level for piece in pieces} == set(range(strategy.levels))

    def test_every_chunk_is_below_every_level_above_it(self, name):
        strategy = get_strategy(name)
        pieces = cut(strategy, DOCUMENT, strategy.check({"size": 20, "overlap": 5}))
        on = [[piece for piece in pieces if piece.level == level] for level in range(strategy.levels)]
        assert not any(piece.children for piece in on[0])
        for below, above in pairwise(on):
            assert sorted(child for piece in above for child in piece.children) == list(range(len(below)))

    def test_a_blank_document_has_its_title_or_nothing(self, name):
        strategy = get_strategy(name)
        parameters = strategy.check({"size": 20, "overlap": 5})
        assert {piece.text for piece in cut(strategy, DocumentRecord("d", "Title", " \n"), parameters)} <= {"Title"}
        assert cut(strategy, DocumentRecord("d", "", " \n"), parameters) == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", STRATEGIES)
class TestASearchByAStrategy:
    """The contract of its searches, over documents about fruit."""

    @pytest.fixture
    def opened(self, name, fruit, built, server):
        """An index by the strategy; the language model, where one is asked, names nothing."""
        requested = {"llm": MODEL} if get_strategy(name).requires_llm else {}
        return open_index(built(fruit, strategy=name, chunk_parameters={"size": 20, "overlap": 0}, **requested))

    def test_chunks_are_found_best_first_in_any_batch(self, opened):
        vectors = opened.encode(["apple", "pear", "plum pear"])
        answers = opened.find_answers(vectors, 10, texts=["apple", "pear", "plum pear"])
        again = opened.find_answers(vectors, 10, texts=["apple", "pear", "plum pear"])
        assert [answer.ranked for answer in answers] == [answer.ranked for answer in again]
        for number, answer in enumerate(answers):
            assert answer.ranked == dense(opened, vectors[number : number + 1], 10)[0]
            assert (np.diff(answer.ranked.scores) <= 0).all()
            assert (answer.ranked.ids < len(opened.chunk_ids)).all()
            assert len(set(answer.ranked.ids.tolist())) == len(answer.ranked)
        assert [documents(opened, answer)[0] for answer in answers] == ["a", "c", "c"]

    def test_a_store_that_compares_all_finds_the_same(self, opened):
        require_installed("sqlite_vec:exact")
        texts, filters = ["apple", "pear", "plum pear"], [{"colour": "green"}, {}, {}]
        vectors = opened.encode(texts)
        neighbours = opened.approximate(vectors, 10, Ann.parse("sqlite_vec:exact"), filters, texts=texts)
        answers = opened.find_answers(vectors, 10, filters, texts=texts)
        assert [answer.ranked for answer in neighbours.answers] == [answer.ranked for answer in answers]
        assert [answer.calls.llm for answer in neighbours.answers] == [answer.calls.llm for answer in answers]
        assert all(cost > 0 for cost in neighbours.costs)

    def test_depth_cuts_and_no_query_is_no_answer(self, opened):
        vectors = opened.encode(["apple"])
        (deep,), (shallow,) = dense(opened, vectors, 10), dense(opened, vectors, 1)
        assert shallow == deep.head(1)
        assert opened.find_answers(vectors[:0], 10) == []

    def test_each_query_finds_only_documents_matching_its_filter(self, opened):
        vectors = opened.encode(["apple", "apple", "apple"])
        filters = [{"colour": "green"}, {}, {"colour": "red", "size": 2}]
        hits = [documents(opened, answer) for answer in opened.find_answers(vectors, 10, filters)]
        assert (hits[0], hits[1][0], hits[2]) == (["c"], "a", ["b"])

    def test_words_find_chunks_alone(self, opened):
        (ranked,) = opened.search_words(["apple"], 10)
        assert sorted(opened.document_ids[ranked.ids].tolist()) == sorted(
            Chunk.objects.filter(level=0, text__icontains="apple").values_list("document_id", flat=True)
        )


def documents(opened, answer):
    ids = dict(opened.index.collection.documents.values_list("pk", "external_id"))
    return list(dict.fromkeys(ids[pk] for pk in opened.document_ids[answer.ranked.ids].tolist()))


class TestFlat:
    @pytest.mark.parametrize(
        "parameters",
        [
            {"overlap": 5},
            {"size": "500"},
            {"size": 500, "ovrlap": 5},
            {"size": True},
            {"size": 9.5},
            {"size": 9, "title": 1},
        ],
    )
    def test_nonsense_is_refused_with_an_example(self, parameters):
        with pytest.raises(StrategyError, match=r'Chunk parameters must be .* "overlap": 50'):
            get_strategy("flat").check(parameters)

    def test_an_overlap_of_half_is_refused(self):
        with pytest.raises(ChunkingError, match="less than half the size"):
            get_strategy("flat").check({"size": 500, "overlap": 250})

    def test_an_unknown_strategy_is_named_with_those_there_are(self):
        with pytest.raises(
            StrategyError, match="retrieval strategy 'cluster' does not exist; choose one of flat, lod_embed, lod_llm"
        ):
            get_strategy("cluster")

    def test_parameters_that_mean_the_same_are_one(self):
        assert get_strategy("flat").check({"size": 9, "sections": False}) == {"size": 9, "overlap": 0, "title": False}

    def test_no_window_reaches_from_one_section_into_another(self):
        flat = get_strategy("flat")
        pieces = flat.cut_chunks(DOCUMENT, flat.check({"size": 50, "overlap": 0, "sections": True}))
        assert [(piece.start, piece.end, piece.section) for piece in pieces] == [
            *[(0, 50, 0), (50, 60, 0), (60, 74, None)],
            *[(75, 125, 1), (125, 175, 1), (175, 199, 1), (200, 224, None)],
        ]


class TestLevelOfDetail:
    def test_sections_and_documents_are_parents_of_their_chunks(self):
        lod = get_strategy("lod_embed")
        pieces = cut(lod, DOCUMENT, lod.check({"size": 100, "overlap": 0}))
        sections = [piece for piece in pieces if piece.level == 1]
        assert [(piece.section, piece.children) for piece in sections] == [(0, (0,)), (None, (1, 4)), (1, (2, 3))]
        assert sections[0].text == "Some words that are cut. Some words that are cut. Some words"
        assert (pieces[-1].level, pieces[-1].children) == (2, (0, 1, 2))
        assert pieces[-1].text == f"Title {TEXT.strip()}"

    def test_a_section_reaches_to_its_last_chunk(self):
        chunks = [Piece(TEXT[start:end], start, end) for start, end in ((0, 50), (40, 140), (50, 100))]
        (section, _) = get_strategy("lod_embed").add_levels(DocumentRecord("d", "Title", TEXT), chunks)[3:]
        assert (section.start, section.end, section.children) == (0, 140, (0, 1, 2))

    def test_given_summary_represents_its_document(self):
        lod = get_strategy("lod_embed")
        document = DocumentRecord("d", "Title", TEXT, metadata={"summary": " About cutting. "})
        assert cut(lod, document, lod.check({}))[-1].text == "Title About cutting."

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"doc_top_k": 0}, "doc_top_k must be a whole number from 1 to 1000, not 0"),
            ({"section_top_k": 1001}, "section_top_k must be a whole number from 1 to 1000"),
            ({"doc_top_k": "5"}, 'Chunk parameters must be .*"doc_top_k": 5'),
            ({"top_k": 5}, 'Chunk parameters must be .*"doc_top_k": 5'),
        ],
    )
    def test_nonsense_is_refused(self, parameters, message):
        with pytest.raises(StrategyError, match=message):
            get_strategy("lod_embed").check(parameters)


@pytest.mark.django_db
class TestKnownAnswers:
    """What a reader can work out by hand (tests/retrieval/words.py)."""

    def test_flat_compares_with_every_section(self, words, built):
        index = built(words, encoder=BAG, chunk_parameters=BY_SECTION)
        answer = search_beta(index, 3)
        assert hits(index, answer) == [("B", "sec_1", 0.8944), ("A", "sec_1", 0.7071), ("C", "sec_3", 0.7071)]
        assert (index.stats["num_chunks"], index.stats["num_vectors"], answer.calls.embed) == (6, 6, 1)

    def test_level_of_detail_stays_within_the_best_documents(self, words, built):
        index = built(words, encoder=BAG, strategy="lod_embed", chunk_parameters={"doc_top_k": 1})
        answer = search_beta(index, 3)
        assert hits(index, answer) == [("B", "sec_1", 0.8944), ("B", "sec_2", 0)]
        assert (index.stats["num_chunks"], index.stats["num_vectors"], answer.calls.embed) == (6, 15, 3)
        assert index.stats["embed_calls"] == 15
        assert (index.stats["num_documents"], answer.calls.llm) == (3, 0)

    def test_queries_missed_by_a_store_are_reported(self, words, built, monkeypatch):
        opened = open_index(built(words, encoder=BAG, strategy="lod_embed"))
        queries = opened.encode(["beta", "zeta"])
        nothing = nullcontext((lambda query, depth: np.empty(0, np.int64), True, 0.0))
        monkeypatch.setattr(pgvector, "nominating", lambda *supplied: nothing)
        neighbours = opened.approximate(queries, 3, Ann.parse("pgvector:exact"))
        assert (neighbours.lists, neighbours.notes) == (dense(opened, queries, 3), {"searched_exactly": [0, 1]})

    def test_two_searches_of_one_set_of_chunks_share_it(self, words, built):
        lod = {"encoder": BAG, "strategy": "lod_embed"}
        narrow, wide = (built(words, name=f"{k}", chunk_parameters={"doc_top_k": k}, **lod) for k in (1, 3))
        assert narrow.chunk_set == wide.chunk_set
        assert narrow.fingerprint != wide.fingerprint
        assert len(search_beta(wide, 10).ranked) == 6
        sections = search_beta(built(words, name="s", chunk_parameters={"section_top_k": 1}, **lod), 9)
        assert hits(wide, sections) == [("B", "sec_1", 0.8944)]

    def test_sections_that_were_replaced_since_route_as_before(self, words, built):
        index = built(words, encoder=BAG, strategy="lod_embed", chunk_parameters={"doc_top_k": 1})
        Section.objects.all().delete()
        assert len(search_beta(index, 10).ranked) == 2
