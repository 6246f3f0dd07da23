import numpy as np
import pytest

from apps.retrieval.model_files import ModelError
from apps.retrieval.rerankers import load_reranker
from tests.tiny_models import save_cross_encoder

TEXTS = ["The apple is red.", "A dog barks in the tree.", "", "pear " * 100, "The plum tastes sweet."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"))


@pytest.fixture(scope="module")
def reranker(folder):
    return load_reranker(str(folder))


def test_it_names_itself(reranker, folder):
    assert (reranker.name, reranker.kind) == (str(folder), "cross_encoder")
    assert reranker.revision.startswith("sha256:")
    assert load_reranker(str(folder)) is reranker


def test_scores_are_the_models_own_logits(reranker, folder):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        expected = [
            model(**tokenizer([["Is the apple red", text]], truncation=True, return_tensors="pt")).logits.item()
            for text in TEXTS
        ]
    scores = reranker.score("Is the apple red", TEXTS)
    assert scores.dtype == np.float64
    assert scores == pytest.approx(expected, abs=1e-5)
    assert not ((scores > 0) & (scores < 1)).all()  # no sigmoid


def test_a_pairs_score_does_not_depend_on_its_neighbours(reranker):
    texts = TEXTS * 20
    together = reranker.score("apple", texts)
    alone = [reranker.score("apple", [text])[0] for text in TEXTS]
    assert together == pytest.approx(alone * 20, abs=1e-5)


def test_no_texts_have_no_scores(reranker):
    assert reranker.score("apple", []).shape == (0,)


def test_a_model_saved_in_half_precision_computes_in_float32(tmp_path):
    assert load_reranker(str(save_cross_encoder(tmp_path, dtype="float16")))._model.dtype.itemsize == 4


def test_a_model_of_several_labels_is_refused(tmp_path):
    with pytest.raises(ModelError, match="gives 3 numbers for a pair"):
        load_reranker(str(save_cross_encoder(tmp_path, labels=3)))


def test_a_model_that_is_not_here_is_named():
    with pytest.raises(ModelError, match="'nobody/reranker' is not on this machine"):
        load_reranker("nobody/reranker")
