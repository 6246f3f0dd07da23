"""Trees of summaries: grown level by level, resumed, shared, and searched with known answers."""

import re
import time
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from apps.operations.working import OperationFailedError, perform_batch, wait
from apps.retrieval import growing
from apps.retrieval.encoders.registry import ENCODERS
from apps.retrieval.indexing import IndexingError, build_index, create_index
from apps.retrieval.models import Chunk, ChunkSet, Index, LLMAnswer
from apps.retrieval.search.crediting import find_summaries
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.strategies import StrategyError, get_strategy
from apps.retrieval.tasks import describe_progress
from tests.created import build
from tests.factories import make_collection
from tests.retrieval.llm_server import RAPTOR
from tests.retrieval.opened import dense, hits, search_beta
from tests.retrieval.words import BAG

TOPICS = ("apple", "pear", "plum")
EXTRACTIVE = {"strategy": "raptor_extractive"}


@pytest.fixture
def orchard(db):
    """Twelve documents of each of three topics."""
    texts = [f"{topic} {topic}. Number {index}." for topic in TOPICS for index in range(12)]
    return make_collection("orchard", [{"external_id": f"{n:02}", "text": text} for n, text in enumerate(texts)])


def levels(index):
    return np.bincount([*index.chunk_set.chunks.values_list("level", flat=True)]).tolist()


def children(index, position):
    return sorted(index.chunk_set.chunks.get(position=position).children.values_list("position", flat=True))


class TestGrowing:
    def test_a_model_summarises_each_cluster_once(self, words, built, server):
        server.answer = lambda prompt: "delta"
        index = built(words, encoder=BAG, **RAPTOR)
        assert (levels(index), children(index, 6)) == ([6, 1], [0, 1, 2, 3, 4, 5])
        stats = {name: index.stats[name] for name in ("num_chunks", "num_vectors", "llm_calls", "num_documents")}
        assert stats == {"num_chunks": 6, "num_vectors": 7, "llm_calls": 1, "num_documents": 3}
        (request,) = server.asked
        prompt = request["messages"][0]["content"]
        assert "Hist\n\nalpha beta\n\nUse\n\nalpha gamma\n\nHist\n\nbeta beta delta" in prompt

    def test_topics_have_a_summary_each_and_one_above_them(self, orchard, built):
        index = built(orchard, **EXTRACTIVE)
        assert levels(index) == [36, 3, 1]
        below = [children(index, position) for position in (36, 37, 38, 39)]
        assert below == [*[list(range(start, start + 12)) for start in (0, 12, 24)], [36, 37, 38]]
        assert Chunk.objects.get(position=36).text.startswith("apple apple. Number 0. apple apple. Number 1. ")
        assert (index.stats["num_vectors"], index.stats["llm_calls"]) == (40, 0)
        assert index.chunk_set.completed_at
        assert levels(built(orchard, name="low", chunk_parameters={"max_layers": 1}, **EXTRACTIVE)) == [36, 3]

    def test_indexes_of_one_tree_share_it(self, words, built, server):
        server.answer = lambda prompt: "delta"
        first = built(words, name="one", encoder=BAG, **RAPTOR)
        same = built(words, name="two", encoder=BAG, chunk_parameters={"search": "tree"}, **RAPTOR)
        assert (same.chunk_set, same.stats["num_vectors"], len(server.asked)) == (first.chunk_set, 7, 1)
        warm = built(words, name="three", encoder=BAG, llm_parameters={"temperature": 0.5}, **RAPTOR)
        extractive = built(words, name="four", encoder=BAG, **EXTRACTIVE)
        assert len({first.chunk_set, warm.chunk_set, extractive.chunk_set}) == 3

    def test_a_build_that_was_broken_off_goes_on(self, orchard, server):
        server.answer = lambda prompt: 400 if "plum plum" in prompt else prompt.split("\n\n")[1]
        fields = {"llm_parameters": {"cache": False}, **RAPTOR}  # which is meant for searches
        index = create_index(orchard, name="i", encoder="keyword:apple,pear,plum", **fields)
        with pytest.raises(OperationFailedError, match="answered 400"):
            wait(build_index(index))
        index.refresh_from_db()
        assert (index.status, levels(index), LLMAnswer.objects.count()) == ("failed", [36], 2)
        server.answer = lambda prompt: prompt.split("\n\n")[1]
        build(index)
        assert (index.status, levels(index), index.stats["llm_calls"]) == ("ready", [36, 3, 1], 4)
        assert len(server.asked) == 5, "those that were answered are not asked again"

    def test_first_of_two_concurrent_growers_stores_a_level(self, orchard, built, monkeypatch):
        load_vectors, begun = growing.load_vectors, []

        def overtaken(*supplied):
            if not begun:
                begun.append(supplied)
                built(orchard, name="other", **EXTRACTIVE)
            return load_vectors(*supplied)

        monkeypatch.setattr(growing, "load_vectors", overtaken)
        assert levels(built(orchard, **EXTRACTIVE)) == levels(Index.objects.get(name="other")) == [36, 3, 1]

    def test_slow_tree_level_continues_in_another_batch(self, orchard, server, monkeypatch):
        monkeypatch.setattr(growing, "PART_SECONDS", 0.3)

        def answer(prompt):
            time.sleep(0.2)
            return prompt.split("\n\n")[1]

        server.answer = answer
        operation = build_index(create_index(orchard, name="i", encoder="keyword:apple,pear,plum", **RAPTOR))
        assert perform_batch(operation.batches.get().pk, owner="me")
        operation.refresh_from_db()
        assert describe_progress(operation)["stage"] == "chunking"
        for _ in range(20):
            grow = operation.batches.filter(payload__part="grow", state="pending").first()
            if grow is None or levels(Index.objects.get()) != [36]:
                break
            perform_batch(grow.pk, owner="me")
        assert levels(Index.objects.get()) == [36, 3]
        assert operation.batches.filter(payload={"part": "grow", "level": 1}).count() > 1
        assert len(server.asked) == 3

    def test_documents_are_counted(self, orchard, settings, monkeypatch):
        settings.BENCHBENCH_BATCH_SECONDS = 0
        monkeypatch.setattr("apps.retrieval.tasks.TRIAL", 4)
        fields = {"encoder": "keyword:apple,pear,plum", **EXTRACTIVE}
        events = []
        wait(build_index(create_index(orchard, name="i", **fields)), on_progress=events.append)
        finished = [event["processed_documents"] for event in events]
        assert finished == sorted(finished)
        assert len(set(finished)) > 3
        assert finished[-1] == events[-1]["total_documents"]
        growing = [event for event in events if event["stage"] == "chunking" and event["processed_documents"]]
        assert growing
        assert {event["eta_seconds"] for event in growing} == {None}

    def test_an_empty_summary_stops_the_build(self, words, server):
        server.answer = lambda prompt: " \n"
        index = create_index(words, name="i", encoder=BAG, **RAPTOR)
        with pytest.raises(OperationFailedError, match=r"A summary for the index .* was empty"):
            wait(build_index(index))
        server.answer = lambda prompt: "alpha beta"
        build(index)
        assert index.status == "ready", "the server is well again"

    def test_it_goes_by_vectors(self, words):
        with pytest.raises(IndexingError, match="needs an encoder, because raptor_extractive searches by vectors"):
            create_index(words, name="i", **EXTRACTIVE)


class Ring:
    """Texts lie on a circle by the first number in each: no clusters, so that where they are cut is for the seed."""

    revision = "1"
    dimension = 2
    angles = np.random.default_rng(3).uniform(0, 2 * np.pi, 160)
    prompts: ClassVar = {"query": "", "document": ""}

    def __init__(self, model_name):
        self.model_name = model_name

    def count_cut(self, texts, *, kind="document"):
        return None

    def embed_batch(self, texts, *, kind="document"):
        angles = self.angles[[int(re.findall(r"\d+", text)[0]) for text in texts]]
        return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)


class TestWhereNothingIsClear:
    @pytest.fixture
    def grown(self, db, built, monkeypatch):
        """Grow one level above texts on a ring, and return each summary with its children."""
        monkeypatch.setitem(ENCODERS, "ring:", Ring)
        ring = make_collection("ring", [{"external_id": f"{n}", "text": f"Number {n}."} for n in range(160)])

        def grow(**parameters):
            index = built(ring, encoder="ring:", chunk_parameters={"max_layers": 1, **parameters}, **EXTRACTIVE)
            summaries = index.chunk_set.chunks.filter(level=1).order_by("position")
            tree = [(summary.text, children(index, summary.position)) for summary in summaries]
            index.delete()
            ChunkSet.objects.all().delete()
            return tree

        return grow

    def test_tree_depends_on_the_seed(self, grown):
        tree = grown()
        assert len(tree) > 5
        assert grown() == grown(seed=42) == tree
        assert grown(seed=1) != tree

    def test_chunk_joins_each_summary_whose_threshold_it_reaches(self, grown):
        counts = {}
        for threshold in (0.1, 0.4, 0.99):
            owner = Counter(child for _, below in grown(cluster_threshold=threshold) for child in below)
            assert owner.keys() == set(range(160))
            counts[threshold] = sum(owner.values())
        assert counts[0.1] > counts[0.4] > counts[0.99] == 160


class TestSearching:
    @pytest.fixture
    def summarised(self, words, built, server):
        """An index whose one summary, above all chunks, is `beta beta beta delta`: nearer to beta than any chunk."""
        server.answer = lambda prompt: "beta beta beta delta"

        def make(**parameters):
            index = built(words, encoder=BAG, chunk_parameters=parameters, **RAPTOR)
            return index

        return make

    def test_summary_chunks_are_ranked_by_their_own_similarity(self, summarised):
        index = summarised()
        best = [("B", "sec_1", 0.9487), ("A", "sec_1", 0.9487), ("C", "sec_3", 0.9487), ("A", "sec_2", 0.9487)]
        assert hits(index, search_beta(index, 4)) == best
        assert len(search_beta(index, 50).ranked) == 6
        assert (search_beta(index, 4).calls.embed, search_beta(index, 4).calls.llm) == (1, 0)

    def test_summary_that_found_a_chunk_is_reported(self, summarised):
        index = summarised()
        leaves = dict(index.chunk_set.leaves.values_list("position", "pk"))

        def scores_of(result):
            ranked = search_beta(result, 6).ranked
            return {leaves[position]: score for position, score in zip(ranked.ids, ranked.scores, strict=True)}

        scores = scores_of(index)
        through = find_summaries(index, "beta", scores)
        assert {chunk: summary.position for chunk, summary in through.items()} == dict.fromkeys(scores, 6)
        assert find_summaries(index, "beta", scores_of(summarised(credit="none"))) == {}
        assert find_summaries(index, "never asked", scores) == {}

    def test_without_credit_it_is_the_search_of_flat(self, summarised, words, built):
        index = summarised(credit="none")
        assert hits(index, search_beta(index, 3)) == [
            ("B", "sec_1", 0.8944),
            ("A", "sec_1", 0.7071),
            ("C", "sec_3", 0.7071),
        ]

    def test_a_tree_search_has_the_chunks_similarities(self, summarised):
        index = summarised(search="tree")
        assert hits(index, search_beta(index, 2)) == [("B", "sec_1", 0.8944), ("A", "sec_1", 0.7071)]

    def test_a_tree_search_stays_below_the_best_summaries(self, orchard, built):
        opened = open_index(built(orchard, chunk_parameters={"search": "tree", "layer_top_k": 1}, **EXTRACTIVE))
        (ranked,) = dense(opened, opened.encode(["pear"]), 50)
        assert sorted(ranked.ids.tolist()) == list(range(12, 24))


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_layers": 0}, "max_layers must be a whole number from 1 to 10, not 0"),
            ({"cluster_threshold": 1.5}, "cluster_threshold must be a number from 0 to 1, not 1.5"),
            ({"cluster_threshold": 1}, 'Chunk parameters must be .*"cluster_threshold": 0.1'),
            ({"search": "wide"}, "search must be collapsed or tree, not 'wide'"),
            ({"size": 900, "context": 800}, "A chunk of 900 characters does not fit into a context of 800"),
            ({"search": "tree", "credit": "none"}, "credit must not be none in a tree search"),
        ],
    )
    def test_nonsense_is_refused(self, parameters, message):
        with pytest.raises(StrategyError, match=message):
            get_strategy("raptor").check(parameters)

    def test_a_reduction_that_is_not_installed_is_refused(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(StrategyError, match="needs the package umap-learn, which is not installed"):
            get_strategy("raptor").check({"reduction": "umap"})
