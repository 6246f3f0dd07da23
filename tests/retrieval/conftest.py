import numpy as np
import pytest

from apps.operations.models import Operation
from apps.operations.working import wait
from apps.retrieval.encoders.registry import ENCODERS, KeywordEncoder
from apps.retrieval.indexing import build_index, create_index
from benchbench.process import reset_all
from tests.factories import make_collection
from tests.retrieval.opened import KEYWORDS
from tests.retrieval.random_vectors import DIMENSION, make_random
from tests.retrieval.words import BagOfWords, import_words


@pytest.fixture(autouse=True)
def files_of_this_test_only(settings, tmp_path):
    settings.BENCHBENCH_VECTOR_DIR = tmp_path / "vectors"
    yield
    reset_all()


@pytest.fixture
def fruit(db):
    """Five documents; `keyword:apple,pear,plum` ranks them as a reader would."""
    return make_collection(
        "fruit",
        [
            {"external_id": "a", "title": "Apples", "text": "apple apple", "metadata": {"colour": "red"}},
            {"external_id": "b", "text": "apple pear", "metadata": {"colour": "red", "size": 2}},
            {"external_id": "c", "text": "pear", "metadata": {"colour": "green", "size": 2}},
            {"external_id": "d", "text": "plum"},
            {"external_id": "e", "text": ""},
        ],
    )


@pytest.fixture
def built():
    """Make an index of a collection and build it here."""

    def build(collection, *, name="index", encoder=KEYWORDS, **options):
        index = create_index(collection, name=name, encoder=encoder, **options)
        operation: Operation = wait(build_index(index))
        assert operation.status == "completed"
        index.refresh_from_db()
        return index

    return build


@pytest.fixture
def encoded(monkeypatch):
    """Every text that the keyword encoder encodes, in their order."""
    texts: list[str] = []
    embed = KeywordEncoder.embed_batch

    def noted(encoder, batch, **options):
        texts.extend(batch)
        return embed(encoder, batch, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", noted)
    return texts


@pytest.fixture
def words(db, tmp_path, monkeypatch):
    monkeypatch.setitem(ENCODERS, "bag:", BagOfWords)
    return import_words(tmp_path)


@pytest.fixture
def index(db):
    return make_random()


@pytest.fixture
def queries():
    random = np.random.default_rng(2).standard_normal((20, DIMENSION)).astype(np.float32)
    return random / np.linalg.norm(random, axis=1, keepdims=True)
