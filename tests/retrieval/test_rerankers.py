import json
import math

import numpy as np
import pytest

from apps.retrieval.encoders import load_encoder
from apps.retrieval.encoders.encoding import load_index_encoder
from apps.retrieval.encoders.gpu_memory import Budget
from apps.retrieval.encoders.model_files import ModelError
from apps.retrieval.encoders.token_store import TokenStore, delete_tokens
from apps.retrieval.models import Index
from apps.retrieval.rerankers import RerankerError, load_reranker
from apps.retrieval.rerankers.cross_encoder import CrossEncoderReranker
from apps.retrieval.rerankers.late_interaction import find_max_similarities
from apps.retrieval.search.open_indexes import open_index
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import plan
from benchbench.ir.ranking import top
from tests.factories import make_collection
from tests.retrieval.opened import dense
from tests.tiny_models import save_cross_encoder, save_encoder

TEXTS = ["The apple is red.", "A dog barks in the tree.", "", "pear " * 100, "The plum tastes sweet."]
QUERY = "Is the apple sweet"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"cross-encoder": save_cross_encoder(folder / "cross"), "encoder": save_encoder(folder)}


@pytest.fixture(params=["late-interaction", "cross-encoder"])
def reranker(request, models, db, built):
    """Each kind of reranker, for an index of TEXTS."""
    collection = make_collection(documents=[{"external_id": str(n), "text": text} for n, text in enumerate(TEXTS)])
    index = built(collection, encoder=str(models["encoder"]))
    return load_reranker(str(models.get(request.param, request.param)), index)


@pytest.fixture
def threads():
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    limits = []

    def use(count):
        torch.set_num_threads(count)
        limits.append(threadpool_limits(count))

    yield use
    torch.set_num_threads(before)
    for limit in reversed(limits):
        limit.restore_original_limits()


class TestAReranker:
    """The contract of every reranker."""

    def test_thresholds_use_the_kind_of_reranker_scores(self, reranker):
        configuration = Configuration(use_reranker=True, reranker=reranker.name)
        assert plan([("run", configuration)]).runs[0].unit_kind == reranker.kind

    def test_it_scores_each_text_in_their_order(self, reranker):
        forth, back = reranker.score(QUERY, TEXTS), reranker.score(QUERY, TEXTS[::-1])
        assert forth.scores.dtype == forth.threshold_scores.dtype == np.float64
        assert forth.scores.shape == forth.threshold_scores.shape == (5,)
        assert np.isfinite(forth.scores).all()
        assert forth.scores.tolist() == back.scores[::-1].tolist()

    def test_no_texts_have_no_scores(self, reranker):
        scores = reranker.score(QUERY, [])
        assert scores.scores.shape == scores.threshold_scores.shape == (0,)
        assert reranker.combine(np.empty(0), scores.scores).shape == (0,)

    def test_scores_are_bit_identical_across_batch_and_thread_counts(self, reranker, threads):
        texts = [" ".join(TEXTS[n % 5].split()[: 1 + n % 9]) for n in range(90)]
        hits = []
        for count in (1, 2):
            threads(count)
            for size in (1, 7, 90):
                pieces = [reranker.score(QUERY, texts[start : start + size]) for start in range(0, 90, size)]
                hits += [np.concatenate([segment.scores for segment in pieces])]
                hits += [np.concatenate([piece.threshold_scores for piece in pieces])]
        for one in range(2, len(hits), 2):
            assert np.array_equal(hits[one], hits[0])
            assert np.array_equal(hits[one + 1], hits[1])

    def test_preparing_changes_no_score(self, reranker):
        before = reranker.score(QUERY, TEXTS).scores
        reranker.prepare([*TEXTS, "A cat."])
        assert np.array_equal(reranker.score(QUERY, TEXTS).scores, before)

    def test_a_query_without_tokens_is_scored_too(self, reranker):
        assert np.isfinite(reranker.score("", TEXTS).scores).all()

    def test_reranker_states_its_revision_and_kind(self, reranker):
        assert "sha256:" in reranker.revision
        assert reranker.kind in ("late_interaction", "cross_encoder")


class TestCrossEncoder:
    @pytest.fixture
    def folder(self, models):
        return models["cross-encoder"]

    def test_it_is_loaded_once_for_all_indexes(self, folder):
        assert load_reranker(str(folder), Index(name="a")) is load_reranker(str(folder), Index(name="b"))

    def test_scores_are_the_models_own_logits(self, folder):
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        with torch.no_grad():
            pairs = [tokenizer([[QUERY, text]], truncation=True, return_tensors="pt") for text in TEXTS]
            expected = [model(**pair).logits.item() for pair in pairs]
        scores = CrossEncoderReranker(str(folder)).score(QUERY, TEXTS).scores
        assert scores == pytest.approx(expected, abs=1e-5)
        assert not ((scores > 0) & (scores < 1)).all()  # no sigmoid

    def test_batches_differ_in_their_last_bits_only(self, folder):
        alone, batched = CrossEncoderReranker(str(folder)), CrossEncoderReranker(str(folder))
        batched.budget = Budget("cross", 1000)
        assert alone.score(QUERY, TEXTS * 9).scores == pytest.approx(batched.score(QUERY, TEXTS * 9).scores, abs=1e-5)

    def test_its_scores_decide_alone(self, folder):
        scores = np.array([1.0, 2.0])
        assert CrossEncoderReranker(str(folder)).combine(np.array([9.0, 0.0]), scores) is scores

    def test_a_model_saved_in_half_precision_computes_in_float32(self, tmp_path):
        assert CrossEncoderReranker(str(save_cross_encoder(tmp_path, dtype="float16")))._model.dtype.itemsize == 4

    def test_a_model_of_several_labels_is_refused(self, tmp_path):
        with pytest.raises(ModelError, match="gives 3 numbers for a pair"):
            CrossEncoderReranker(str(save_cross_encoder(tmp_path, labels=3)))

    def test_a_model_that_is_not_here_is_named(self):
        with pytest.raises(ModelError, match="'nobody/reranker' is not on this machine"):
            CrossEncoderReranker("nobody/reranker")


class TestLateInteraction:
    """The keyword encoder has a direction for each keyword, so that a pair's score can be made by hand."""

    @pytest.fixture
    def late(self, fruit, built):
        return load_reranker("late-interaction", built(fruit))

    def test_tokens_count_by_how_rare_they_are(self, late):
        # Of five documents two have an apple, two a pear, one a plum.
        apple, plum = math.log(1 + 3.5 / 2.5), math.log(1 + 4.5 / 1.5)
        scores = late.score("apple plum", ["apple", "plum", "plum apple", "pear", ""])
        assert scores.scores == pytest.approx([apple / (apple + plum), plum / (apple + plum), 1, 0, 0])
        assert scores.threshold_scores == pytest.approx([0.5, 0.5, 1, 0, 0])

    def test_a_list_is_ordered_by_both_stages_standardised(self, late):
        assert late.combine(np.array([3.0, 1.0]), np.array([0.2, 0.4])) == pytest.approx([1 - 2, -1 + 2])
        assert late.combine(np.array([3.0, 1.0]), np.array([0.5, 0.5])) == pytest.approx([1, -1])
        assert late.combine(np.array([7.0]), np.array([0.5])).tolist() == [0]

    def test_an_index_without_an_encoder_is_a_sentence(self, fruit, built):
        with pytest.raises(RerankerError, match="has no encoder"):
            load_reranker("late-interaction", built(fruit, encoder=""))

    def test_an_encoder_without_token_vectors_is_a_sentence(self, fruit, built, monkeypatch):
        index = built(fruit)
        monkeypatch.delattr(type(load_index_encoder(index)), "embed_tokens")
        with pytest.raises(RerankerError, match="does not make: use an index with another encoder"):
            load_reranker("late-interaction", index)

    def test_similarities_are_the_greatest_in_double_precision(self):
        draw = np.random.default_rng(5)
        query, text = (draw.normal(size=(n, 16)).astype(np.float32) for n in (7, 40))
        expected = (query.astype(float) @ text.T.astype(float)).max(axis=1)
        assert find_max_similarities(query, text) == pytest.approx(expected, abs=1e-12)
        assert find_max_similarities(query, text[:0]).tolist() == [0] * 7


class TestTokenVectors:
    def test_encoding_a_chunk_also_stores_its_tokens(self, fruit, built, models):
        index = built(fruit, encoder=str(models["encoder"]))
        store = TokenStore(load_index_encoder(index), "document")
        assert store.find_missing(list(index.chunk_set.chunks.values_list("text", flat=True))) == []

    def test_one_pass_makes_the_same_vectors_as_two(self, models):
        for name in (str(models["encoder"]), "all-MiniLM-L6-v2"):
            encoder = load_encoder(name)
            vectors, tokens = encoder.embed_tokens(TEXTS)
            assert vectors == pytest.approx(encoder.embed_batch(TEXTS), abs=1e-6)
            assert [one.ids.tolist() for one in tokens] == [ids.tolist() for ids in encoder.tokenize(TEXTS)]
            assert [len(one.vectors) for one in tokens] == [len(one.ids) for one in tokens]
            lengths = np.concatenate([np.linalg.norm(one.vectors.astype(float), axis=1) for one in tokens])
            assert lengths == pytest.approx(1, abs=2e-3)
            assert len(tokens[2].ids) == 0  # nothing is left of an empty text

    def test_stored_tokens_are_read_back_unchanged(self, models):
        store = TokenStore(load_encoder(str(models["encoder"])), "document")
        for one, another in zip(
            store.load_tokens(TEXTS), TokenStore(store.encoder, "document").load_tokens(TEXTS), strict=True
        ):
            assert np.array_equal(one.ids, another.ids)
            assert np.array_equal(one.vectors, another.vectors)

    def test_those_unused_for_longest_make_room(self, models, settings):
        store = TokenStore(load_encoder(str(models["encoder"])), "document")
        texts = [f"{'apple ' * 20}{'pear ' * n}" for n in range(20)]
        size = sum(4 * len(one.ids) + one.vectors.nbytes for one in store.load_tokens(texts))
        settings.BENCHBENCH_TOKEN_BYTES = size // 2
        delete_tokens(store.encoder.model_name, store.encoder.revision, "document")
        assert len(store.load_tokens(texts)) == 20
        assert size // 4 < sum([file.stat().st_size for file in store.folder.rglob("*") if file.is_file()]) <= size // 2

    def test_a_build_keeps_none_where_there_is_no_room(self, fruit, built, settings):
        settings.BENCHBENCH_TOKEN_BYTES = 0
        delete_tokens("", "", "")
        index = built(fruit)
        assert (index.status, index.stats["num_vectors"]) == ("ready", 5)
        assert TokenStore(load_index_encoder(index), "document").find_missing(["pear"]) == ["pear"]
        assert load_reranker("late-interaction", index).score("pear", ["pear"]).scores.tolist() == [1]


class TestPrompts:
    """A model that wants "query: " and "passage: " before its texts, as its configuration says."""

    @pytest.fixture
    def encoder(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("prompts")
        return load_encoder(str(save_encoder(folder, prompts={"query": "red ", "passage": "green "})))

    def test_each_kind_of_text_has_its_own(self, encoder):
        query, document = (encoder.embed_batch(["apple"], kind=kind)[0] for kind in ("query", "document"))
        assert query @ document < 0.999

    def test_its_tokens_are_not_the_texts(self, encoder):
        for kind in ("query", "document"):
            (ids,) = encoder.tokenize(["apple red"], kind=kind)
            _, (tokens,) = encoder.embed_tokens(["apple red"], kind=kind)
            assert len(ids) == len(tokens.ids) == len(tokens.vectors) == 2


QUERIES, DOCUMENTS, CHARACTERS = 30, 250, 600  # the beginnings of texts, which take a third of the time to encode


@pytest.mark.django_db
@pytest.mark.thorough
def test_late_interaction_beats_its_first_stage_on_cranfield(shared_data, built):
    folder = shared_data / "cranfield"
    judged = {}
    for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        judged.setdefault(query, {})[document] = int(grade)
    chosen = dict(list(judged.items())[:QUERIES])
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    relevant = {document for grades in chosen.values() for document, grade in grades.items() if grade}
    slice_of_it = sorted(rows, key=lambda row: row["_id"] not in relevant)[:DOCUMENTS]
    collection = make_collection(
        documents=[
            {"external_id": row["_id"], "title": row["title"], "text": row["text"][:CHARACTERS]} for row in slice_of_it
        ]
    )
    texts = {row["_id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").open())}
    opened = open_index(built(collection, encoder="all-MiniLM-L6-v2", lexical=False))
    names = np.array(opened.index.chunk_set.chunks.order_by("position").values_list("document__external_id", flat=True))
    reranker = load_reranker("late-interaction", opened.index)
    requests = [texts[query] for query in chosen]
    first = dense(opened, opened.encode(requests), 50)
    second = [
        top(
            reranker.combine(hit.scores, reranker.score(query, opened.load_texts(hit.ids)).scores),
            50,
            ids=hit.ids,
        )
        for query, hit in zip(requests, first, strict=True)
    ]
    before, after = (
        evaluate(
            [Measure("nDCG", 10)],
            GradedRankings.from_rankings([names[one.ids] for one in lists], list(chosen.values())),
        )
        for lists in (first, second)
    )
    print(f"nDCG@10 {before.mean():.4f} -> {after.mean():.4f}")
    assert after.mean() > before.mean() + 0.02
