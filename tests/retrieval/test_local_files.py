"""Every file of this machine that figures are computed from, damaged in every way: the figures stay what they are."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from apps.retrieval.encoders import load_encoder
from apps.retrieval.encoders.base import TokenVectors
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.encoders.token_store import TokenStore
from apps.retrieval.rerankers import load_reranker
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.search.vectors import VectorsError, locate_vectors, map_vectors
from benchbench.local_files.packs import OVERHEAD
from benchbench.local_files.sealed import SEAL_BYTES
from benchbench.process import reset_all
from tests.factories import make_collection
from tests.files.samples import spoil, ways
from tests.retrieval.opened import KEYWORDS, dense

pytestmark = pytest.mark.django_db
QUERY = "apple pear plum"


@pytest.fixture
def index(built):
    """An index of fourteen documents, none like another."""
    texts = (f"{'apple ' * (1 + n % 3)}{'pear ' * (n % 5)}{'plum ' * (n % 7)}" for n in range(14))
    return built(make_collection("many", [{"text": text.strip()} for text in texts]))


def figures(index):
    """Return the rankings of a query with their scores, and what the reranker makes of the first."""
    opened = open_index(index)
    (result,) = dense(opened, opened.encode([QUERY]), 10)
    (words,) = opened.search_words([QUERY], 10)
    scores = load_reranker("late-interaction", index).score(QUERY, opened.load_texts(result.ids))
    arrays = (result.ids, result.scores, scores.scores, scores.threshold_scores, words.ids, words.scores)
    return (*map(np.ndarray.tolist, arrays),)


def missing(file):
    file.unlink()


ENDINGS = {
    ending: {name: partial(spoil, way=way) for name, way in ways(**layout).items()} | {"missing": missing}
    for ending, layout in {
        "vectors": {"row": 16, "header": slice(-SEAL_BYTES, None)},
        "words": {"row": 4, "header": slice(-SEAL_BYTES, None)},
        "counts": {"row": 8, "header": slice(-SEAL_BYTES, None)},
        "pack": {"row": 8, "header": slice(0, OVERHEAD)},
    }.items()
}


@pytest.mark.parametrize("is_new", [False, True], ids=["in a process that has it open", "in a new process"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.thorough
def test_no_damage_changes_a_figure(index, settings, ending, is_new):
    right = figures(index)
    assert len(set(right[1])) > 5
    for name, way in ENDINGS[ending].items():
        files = list(settings.BENCHBENCH_VECTOR_DIR.rglob(f"*.{ending}"))
        assert files
        for file in files:
            way(file)
        if is_new:
            reset_all()
        assert figures(index) == right, name
        for file in settings.BENCHBENCH_VECTOR_DIR.rglob(f"*.{ending}"):
            file.unlink()
        reset_all()
        assert figures(index) == right, name


@pytest.mark.parametrize("way", ["emptied", "cut to half", "bits flipped"])
def test_a_third_of_the_packs_may_be_damaged(index, settings, way):
    """As a power cut leaves them: each in its way, the others whole."""
    right = figures(index)
    settings.BENCHBENCH_TOKEN_BYTES = 4800  # a pack holds a 16th
    for file in settings.BENCHBENCH_VECTOR_DIR.rglob("*.pack"):
        file.unlink()
    reset_all()
    assert figures(index) == right
    packs = sorted(settings.BENCHBENCH_VECTOR_DIR.rglob("*.pack"))
    assert len(packs) > 5
    for file in packs[::3]:
        spoil(file, ways(row=8, header=slice(0, OVERHEAD))[way])
    reset_all()
    assert figures(index) == right


def test_document_tokens_are_synced_to_disk_but_queries_not(index, settings, monkeypatch):
    """One `fsync` of the pack for all the texts of a call, and one of its folder."""
    synced, fsync = [], os.fsync
    for file in settings.BENCHBENCH_VECTOR_DIR.rglob("*.pack"):
        file.unlink()
    reset_all()

    def noted(descriptor):
        fsync(descriptor)
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", noted)
    store = TokenStore(load_encoder(KEYWORDS), "document")
    store.load_tokens(["apple", "pear", "plum"])
    assert synced == [*store.folder.glob("*.pack"), store.folder]
    store.load_tokens(["apple", "pear"])
    TokenStore(load_encoder(KEYWORDS), "query").load_tokens(["apple"])
    assert len(synced) == 2


def test_open_index_keeps_mapping_the_checked_file(index):
    """Another in this process has found the damage, and made the file again: what is open still maps the old one."""
    right = figures(index)
    damaged = locate_vectors(index)
    content = bytearray(damaged.read_bytes())
    content[: len(content) // 2] = bytes(len(content) // 2)
    damaged.write_bytes(content)
    assert np.array_equal(map_vectors(index), map_vectors(index))
    assert figures(index) == right


def test_valid_file_of_another_index_is_replaced(index, built):
    right = figures(index)
    second = built(index.collection, name="other", encoder="keyword:plum,pear,apple")
    file = locate_vectors(index)
    assert map_vectors(second).shape == map_vectors(index).shape
    file.write_bytes(locate_vectors(second).read_bytes())
    reset_all()
    assert figures(index) == right


def test_packs_of_another_model_are_not_read(index):
    theirs, ours = (TokenStore(load_encoder(f"keyword:{words}"), "document") for words in ("apple,pear", "pear,apple"))
    ours.store_tokens(["pear apple"], [TokenVectors(np.array([0]), np.eye(1, 3, dtype=np.float16))], make_room=True)
    (pack,) = ours.folder.glob("*.pack")
    theirs.folder.mkdir()
    pack.rename(theirs.folder / pack.name)
    assert theirs.find_missing(["pear apple"]) == ["pear apple"]
    assert theirs.load_tokens(["pear apple"])[0].ids.tolist() == [1, 0]


def test_stored_text_tokens_are_never_overwritten(index):
    """Anyone who adds it second takes what is there, also where it was encoded to other last bits."""
    stores = [TokenStore(load_encoder(KEYWORDS), "query") for _ in range(2)]
    first, second = ([TokenVectors(np.array([0]), np.eye(1, 4, k, dtype=np.float16))] for k in (0, 1))
    assert stores[0].store_tokens(["apple"], first, make_room=True)
    reset_all()
    assert TokenStore(stores[0].encoder, "query").store_tokens(["apple"], second, make_room=True)
    for store in stores:
        assert np.array_equal(store.load_tokens(["apple"])[0].vectors, first[0].vectors)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((2, 4), np.nan), "a token of the query 'apple' that is not finite"),
        (np.zeros((2, 4)), "a token of the query 'apple' that is zero"),
        (np.eye(2, 5), r"of the shape \(2, 5\), not \(2, 4\)"),
        (np.eye(3, 4), r"of the shape \(3, 4\), not \(2, 4\)"),
    ],
)
def test_token_vectors_that_are_none_are_not_kept(fruit, built, monkeypatch, vectors, message):
    reranker = load_reranker("late-interaction", built(fruit))

    def embed(encoder, texts, **options):
        tokens = TokenVectors(np.array([0, 1], np.int32), vectors.astype(np.float16))
        return encoder.embed_batch(texts), [tokens] * len(texts)

    with monkeypatch.context() as patched:
        patched.setattr(KeywordEncoder, "embed_tokens", embed)
        with pytest.raises(Exception, match=message):
            reranker.score("apple", ["apple"])
        patched.setattr(KeywordEncoder, "embed_tokens", lambda *args, **options: (None, []))
        with pytest.raises(Exception, match="read 1 text but returned tokens of 0"):
            reranker.score("apple", ["apple"])
    assert reranker.score("apple", ["apple"]).scores.tolist() == [1]


@pytest.mark.parametrize(("vector", "flaw"), [("[0,0,0,0]", "zero"), ("[3,0,4,0]", "of length 5 instead of 1")])
def test_invalid_vector_in_the_database_is_an_error(fruit, built, vector, flaw):
    index = built(fruit)
    tables._execute(f"UPDATE {index.vector_table} SET embedding = '{vector}' WHERE id = 3")
    with pytest.raises(VectorsError, match=f'the index "index" has a vector for chunk 3 that is {flaw}: delete'):
        map_vectors(index)
