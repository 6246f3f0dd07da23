import weakref

import numpy as np
import pytest

from apps.retrieval.encoders import EncoderError, load_encoder
from apps.retrieval.encoders.base import BATCH, batch_by_length
from apps.retrieval.encoders.gpu_memory import Budget
from apps.retrieval.encoders.model_files import ModelError, find_model, read_revision
from apps.retrieval.encoders.registry import RESIDENT_ENCODERS
from benchbench.process import reset_all

KEYWORDS = "keyword:apple,pear"


class TestKeywordEncoder:
    def test_keyword_counts_ignore_case_and_a_constant_is_added(self):
        encoder = load_encoder(KEYWORDS)
        assert (encoder.model_name, encoder.revision, encoder.dimension) == (KEYWORDS, "1", 3)
        assert encoder.embed_batch(["An Apple, an APPLE; a pear; apples"])[0] == pytest.approx(
            np.array([2, 1, 0.1]) / np.linalg.norm([2, 1, 0.1]), abs=1e-6
        )

    def test_texts_without_keywords_still_have_a_direction(self):
        assert load_encoder(KEYWORDS).embed_batch(["plum", ""]).tolist() == [[0, 0, 1], [0, 0, 1]]

    @pytest.mark.parametrize("name", ["keyword:", "keyword:a,,b", "keyword:a,A"])
    def test_it_wants_distinct_keywords(self, name):
        with pytest.raises(EncoderError, match="must have distinct keywords"):
            load_encoder(name)


@pytest.mark.parametrize("name", [KEYWORDS, "all-MiniLM-L6-v2"])
class TestAnEncoder:
    """The contract of an encoder."""

    TEXTS = ["An apple a day.", "", "pear " * 400, "What does a pear taste like?"]

    def test_vectors_have_unit_length_and_text_order(self, name):
        encoder = load_encoder(name)
        vectors = encoder.embed_batch(self.TEXTS)
        assert vectors.shape == (4, encoder.dimension)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
        alone = np.array([encoder.embed_batch([text])[0] for text in self.TEXTS])
        assert np.sum(vectors * alone, axis=1).min() > 0.99999

    def test_no_texts_make_no_vectors(self, name):
        assert load_encoder(name).embed_batch([]).shape == (0, load_encoder(name).dimension)

    def test_it_stays_resident(self, name):
        assert load_encoder(name) is load_encoder(name)


class TestSentenceTransformerEncoder:
    def test_like_texts_are_close(self):
        encoder = load_encoder("all-MiniLM-L6-v2")
        dog, puppy, tax = encoder.embed_batch(["A dog barks.", "The puppy is barking.", "Corporate income tax law"])
        assert dog @ puppy > 0.6 > 0.2 > dog @ tax
        assert encoder.revision.startswith("sha256:")

    @pytest.mark.thorough
    def test_models_that_are_resident_no_longer_are_freed(self, tmp_path):
        model = find_model("all-MiniLM-L6-v2")
        folders = [tmp_path / str(number) for number in range(RESIDENT_ENCODERS + 3)]
        for folder in folders:
            folder.symlink_to(model)
        reset_all()
        models = [weakref.ref(load_encoder(str(folder))._model) for folder in folders]
        alive = [reference() is not None for reference in models]
        assert alive == [False, False, alive[2], *[True] * RESIDENT_ENCODERS]
        reset_all()

    def test_installed_wheel_provides_the_model_under_both_names(self):
        assert find_model("all-MiniLM-L6-v2") == find_model("sentence-transformers/all-MiniLM-L6-v2") is not None

    def test_missing_model_is_named_without_being_downloaded(self):
        with pytest.raises(
            ModelError, match=r"'nobody/nothing' is not on this machine.*give the path of its folder in a command"
        ):
            load_encoder("nobody/nothing")

    def test_a_folder_that_is_no_model_is_named(self, tmp_path):
        with pytest.raises(ModelError, match="could not be loaded") as refused:
            load_encoder(f"{tmp_path}/.")
        assert str(tmp_path.parent) not in str(refused.value).replace(f"{tmp_path}/.", "")

    def test_no_name_is_an_error(self):
        with pytest.raises(ModelError, match="The model is missing"):
            load_encoder(" ")


class TestFindModel:
    def test_hugging_face_cache_comes_first_and_gives_the_commit(self, tmp_path, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        commit = "0123456789abcdef0123456789abcdef01234567"
        cached = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2"
        snapshot = cached / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / "modules.json").write_text("[]")
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text(commit)
        assert find_model("all-MiniLM-L6-v2") == find_model("sentence-transformers/all-MiniLM-L6-v2") == snapshot
        assert read_revision(snapshot) == commit

    @pytest.mark.parametrize("name", ["/no/such/folder", "a name with spaces", "nobody/nothing"])
    def test_model_found_nowhere_is_none(self, name):
        assert find_model(name) is None


class TestRevisionOf:
    def test_revision_depends_on_weights_and_configuration_only(self, tmp_path):
        (tmp_path / "model.safetensors").write_bytes(b"weights")
        (tmp_path / "config.json").write_text("{}")
        first = read_revision(tmp_path)
        (tmp_path / "README.md").write_text("notes")
        assert read_revision(tmp_path) == first
        (tmp_path / "config.json").write_text('{"layers": 2}')
        second = read_revision(tmp_path)
        (tmp_path / "model.safetensors").write_bytes(b"other weights")
        assert len({first, second, read_revision(tmp_path)}) == 3


class TestLengthBatches:
    def test_they_hold_every_text_once_longest_first(self):
        texts = ["x" * (n * 37 % 101) for n in range(100)]
        batches = list(batch_by_length(texts))
        assert sorted(index for batch in batches for index in batch) == list(range(100))
        lengths = [len(texts[index]) for batch in batches for index in batch]
        assert lengths == sorted(lengths, reverse=True)
        assert max(map(len, batches)) == BATCH

    def test_long_untruncated_texts_get_smaller_batches(self):
        texts = ["x" * 20_000] * 40
        assert {len(batch) for batch in batch_by_length(texts)} == {3, 1}
        assert {len(batch) for batch in batch_by_length(texts, window=256)} == {32, 8}
        assert [len(batch) for batch in batch_by_length(["x" * 10**6] * 2)] == [1, 1]

    def test_a_budget_is_filled_with_texts_of_similar_length(self):
        texts = ["x" * 400] * 200 + ["x" * 100] * 300 + [""] * 500
        sizes = [len(batch) for batch in batch_by_length(texts, budget=Budget("model", 10_000))]
        assert sizes == [100, 100, 300, 500]
        assert {len(batch) for batch in batch_by_length(texts[:200], budget=Budget("model", 10))} == {1}
        assert {
            len(batch) for batch in batch_by_length(["x" * 4000] * 200, window=100, budget=Budget("m", 10_000))
        } == {100}
