"""The contract of a vector store: every member of the registry passes, by each of its methods."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from apps.retrieval.search import exact
from apps.retrieval.search import vectors as tables
from apps.retrieval.stores import STORES
from apps.retrieval.stores.base import StoreError
from apps.retrieval.stores.filling import SEAL, find_version, read_seal, seal_folder
from benchbench.database.bin import drop_table
from benchbench.ir.planning import ann
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import ScoredList
from tests.retrieval.arms import LEARNS, WIDEST, Arm, keep, require_installed, unit

COLLECTION = "vectors_of_a_test"
EAST, NORTH, WEST = [1, 0], [0, 1], [-1, 0]


def vectors(*rows):
    matrix = np.array(rows, np.float32).reshape(len(rows), -1)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_every_store_that_can_be_named_is_here():
    assert {"pgvector", *STORES} == set(ann.STORES)
    methods = {f"{store}:{method}" for store, methods in ann.STORES.items() for method in methods}
    assert set(WIDEST) == methods - {"memory:exact"}  # by which they are measured


@pytest.fixture(params=[name for name in WIDEST if name not in LEARNS])
def fill(request, tmp_path):
    require_installed(WIDEST[request.param])
    if request.param.startswith("pgvector"):
        request.getfixturevalue("db")
    return lambda *rows, metadata=None: Arm(tmp_path, WIDEST[request.param], vectors(*rows), metadata)


class TestAVectorStore:
    def test_it_finds_the_nearest_first(self, fill):
        east, north = fill(WEST, NORTH, [1, 1]).search(vectors(EAST, NORTH), 3)
        assert east.ids.tolist() == [2, 1, 0]
        assert east.scores == pytest.approx([0.5**0.5, 0, -1], abs=1e-7)
        assert north.ids.tolist() == [1, 2, 0]

    def test_vectors_without_metadata_pass_no_filter(self, fill):
        assert fill(EAST).search(vectors(EAST), 1, {"version": 8})[0].ids.tolist() == []

    def test_equal_vectors_rank_by_id(self, fill):
        arm = fill(WEST, EAST, NORTH, EAST, EAST)
        if arm.setting.compares_all:  # a graph that is asked for two of three equal ones may give any
            assert arm.search(vectors(EAST), 2)[0].ids.tolist() == [1, 3]
        assert arm.search(vectors(EAST), 5)[0].ids.tolist() == [1, 3, 4, 2, 0]

    def test_a_filter_applies_before_ranking(self, fill):
        metadata = [{"version": 7}, {"version": 8, "lang": "en"}, {"version": 8, "lang": "de"}, {}]
        arm = fill(EAST, [1, 1], NORTH, EAST, metadata=metadata)
        filters = ({"version": 8}, {"version": 8, "lang": "de"}, {"version": "8"}, {"lang": "fr"})
        hits = [arm.search(vectors(EAST), 1, filter)[0].ids.tolist() for filter in filters]
        assert hits == [[1], [2], [], []]
        assert arm.search(vectors(EAST), 1)[0].ids.tolist()[0] in (0, 3)


class TestACollection:
    @pytest.fixture(params=[name for name in WIDEST if name.partition(":")[0] in STORES])
    def arm(self, request, tmp_path):
        require_installed(WIDEST[request.param])
        return Arm(tmp_path, WIDEST[request.param], unit(300, 8, 0))

    def test_a_filter_applies_inside_its_search(self, arm):
        """What the store itself names, before anything is done about what is missing or should not be there."""
        mask = np.arange(300) % 3 == 1
        nominate = arm.kept.collection.build_nominator(arm.setting, mask)
        for query in unit(10, 8, 1):
            assert sorted(nominate(query, 100).tolist()) == np.flatnonzero(mask).tolist()
            few = nominate(query, 7)
            assert (len(set(few.tolist())), len(few), mask[few].all()) == (7, 7, True)
        assert len(arm.kept.collection.build_nominator(arm.setting, np.zeros(300, bool))(query, 5)) == 0

    def test_collection_reports_its_actual_options(self, arm):
        back = arm.kept.collection.read_back(arm.setting)
        if arm.setting.store == "lancedb":  # which reports no options
            assert back["index"] == ("IVF_PQ" if arm.setting.method == "ivfpq" else None)
            return
        assert back
        assert {name: back[name] for name, _ in arm.setting.options} == dict(arm.setting.options)


@pytest.mark.parametrize("text", ["compressed", "sqlite_vec:exact", "faiss:hnsw"])
def test_threads_search_a_collection_at_once(tmp_path, text):
    require_installed(text)
    stored, queries = keep(tmp_path, text, unit(3000, 64, 0)), unit(60, 64, 1)

    def search(query):
        return stored.collection.build_nominator(Ann.parse(text), None)(query, 20).tolist()

    alone = [search(query) for query in queries]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(search, [*queries] * 5)) == alone * 5


@pytest.mark.parametrize(
    ("free", "message"), [(0, "No space left on device. Free disk space"), (2**40, "division by zero")]
)
def test_a_full_disk_is_named(monkeypatch, tmp_path, free, message):
    require_installed("sqlite_vec:exact")
    monkeypatch.setattr(STORES["sqlite_vec"], "fill", lambda *_: 1 / 0)  # any error of its own
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(Exception, match=message):
        keep(tmp_path, "sqlite_vec:exact", unit(3, 8, 0))
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


class TestManyVectors:
    """The contract of a store that keeps rounded vectors too, and cannot hold a few."""

    @pytest.fixture(params=WIDEST)
    def arm(self, request, tmp_path):
        require_installed(WIDEST[request.param])
        if request.param.startswith("pgvector"):
            request.getfixturevalue("db")
        return Arm(tmp_path, WIDEST[request.param], unit(300, 8, 0), [{"version": index % 3} for index in range(300)])

    def test_results_are_ranked_by_full_vectors(self, arm):
        for query, ranked in zip(arm.vectors[:20], arm.search(arm.vectors[:20], 10), strict=True):
            assert ranked.scores == pytest.approx(arm.vectors[ranked.ids] @ query, abs=1e-6)
            assert (np.diff(ranked.scores) <= 0).all()

    def test_results_are_limited_by_top_k_and_collection_size(self, arm):
        assert [len(arm.search(arm.vectors[:1], k)[0]) for k in (1, 2, 500)] == [1, 2, 300]
        assert arm.search(arm.vectors[:0], 5) == []

    def test_answers_are_repeatable_and_independent_of_the_batch(self, arm):
        first = arm.search(arm.vectors[:20], 10)
        assert arm.search(arm.vectors[:20], 10) == first
        assert [arm.search(query[None], 10)[0] for query in arm.vectors[:20]] == first

    def test_a_filter_applies_before_ranking(self, arm):
        (hits,) = arm.search(arm.vectors[:1], 500, {"version": 2})
        assert sorted(hits.ids.tolist()) == list(range(2, 300, 3))
        assert arm.search(arm.vectors[:1], 5, {"version": 3})[0].ids.tolist() == []


def test_an_index_without_chunks_finds_nothing(tmp_path):
    require_installed("faiss:exact")
    arm = Arm(tmp_path, "faiss:exact", vectors(EAST))
    arm.vectors = arm.vectors[:0]
    assert arm.search(vectors(EAST, NORTH), 5) == [ScoredList.empty(), ScoredList.empty()]
    assert arm.view.seconds == [0, 0]


class TestAStoreThatBreaksItsWord:
    """What calls itself exact is never believed blindly."""

    @pytest.fixture(autouse=True)
    def needs(self):
        require_installed("faiss:exact")

    def search(self, tmp_path, *supplied):
        arm = Arm(tmp_path, "faiss:exact", unit(20, 4, 0))
        answers = iter(supplied)
        arm.kept.collection.build_nominator = lambda setting, mask: lambda query, depth: np.array(next(answers))
        return arm.search(unit(1, 4, 1), 5)

    def test_one_that_gives_too_few_is_an_error(self, tmp_path):
        with pytest.raises(StoreError, match="faiss:exact returned 3 of 13 requested chunks"):
            self.search(tmp_path, [1, 2, 3])

    def test_one_that_gives_a_chunk_twice_is_an_error(self, tmp_path):
        with pytest.raises(StoreError, match="returned a chunk twice"):
            self.search(tmp_path, [*range(12), 3])

    @pytest.mark.parametrize("text", ["faiss:exact", "faiss:hnsw"])
    def test_nomination_order_does_not_affect_the_ranking(self, text, tmp_path):
        arm = Arm(tmp_path, text, np.repeat(unit(4, 4, 0), 5, axis=0))
        shuffled = np.random.default_rng(0).permutation(20)
        arm.kept.collection.build_nominator = lambda setting, mask: lambda query, depth: shuffled
        queries = unit(3, 4, 1)
        assert arm.search(queries, 7) == exact.find_nearest(arm.vectors, queries, 7)

    def test_store_is_asked_for_more_on_possible_ties(self, tmp_path):
        best = Arm(tmp_path, "faiss:exact", np.repeat(unit(2, 4, 0), [40, 3], axis=0)).search(unit(2, 4, 0)[:1], 5)[0]
        assert best.ids.tolist() == [0, 1, 2, 3, 4]  # the first of forty that are equally near


class TestAFolder:
    @pytest.fixture(params=["compressed", "sqlite_vec:exact", "chromadb:hnsw", "faiss:hnsw", "lancedb:exact"])
    def text(self, request):
        require_installed(request.param)
        return request.param

    def test_it_is_filled_once(self, text, tmp_path, monkeypatch):
        first = keep(tmp_path, text, unit(50, 8, 0))
        assert first.bytes > 50 * 8
        monkeypatch.setattr(STORES[Ann.parse(text).store], "fill", None)
        again = keep(tmp_path, text, unit(50, 8, 0))
        assert (again.bytes, again.build_seconds, again.version) == (first.bytes, first.build_seconds, first.version)
        assert again.version == find_version(STORES[Ann.parse(text).store])
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    @pytest.mark.parametrize("harm", ["seal", "content", "version", "shape", "folder"])
    def test_changed_folder_is_filled_again(self, text, harm, tmp_path, monkeypatch):
        rows, more = unit(50, 8, 0), unit(60, 8, 0)
        keep(tmp_path, text, rows, holds="these")
        (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
        match harm:
            case "seal":
                (folder / SEAL).unlink()
            case "version":
                facts = read_seal(folder) | {"version": "0"}
                (folder / SEAL).unlink()
                seal_folder(folder, facts)
            case "folder":
                shutil.rmtree(folder)
        filled = []
        store = STORES[Ann.parse(text).store]
        fill = store.fill
        monkeypatch.setattr(store, "fill", lambda *arguments: filled.append(1) or fill(*arguments))
        claimed = keep(
            tmp_path, text, more if harm == "shape" else rows, holds="others" if harm == "content" else "these"
        )
        assert filled == [1]
        assert claimed.collection.shape == (60 if harm == "shape" else 50, 8)

    def test_a_filling_that_is_broken_off_leaves_nothing(self, text, tmp_path, monkeypatch):
        store = STORES[Ann.parse(text).store]

        def broken(folder, *_):
            (folder / "half").write_bytes(b"half")
            raise OSError("No space left on device")

        monkeypatch.setattr(store, "fill", broken)
        with pytest.raises(OSError, match="No space left"):
            keep(tmp_path, text, unit(5, 8, 0))
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]

    def test_store_holding_fewer_vectors_than_given_is_rejected(self, text, tmp_path, monkeypatch):
        store = STORES[Ann.parse(text).store]
        fill = store.fill
        monkeypatch.setattr(store, "fill", lambda folder, rows, setting: fill(folder, rows[:40], setting))
        with pytest.raises(StoreError, match="was filled with 50 vectors and holds 40 of 8 dimensions"):
            keep(tmp_path, text, unit(50, 8, 0))


@pytest.mark.django_db
class TestTheTableOfVectors:
    def test_vectors_are_read_back_bit_identical(self):
        random = np.random.default_rng(0).standard_normal((5000, 7)).astype(np.float32)
        tables.create_table(COLLECTION, 7)
        tables.insert_rows(COLLECTION, np.arange(4999, -1, -1), random[::-1])
        pieces = list(tables.read_table(COLLECTION, 7))
        assert np.concatenate([ids for ids, _ in pieces]).tolist() == list(range(5000))
        assert np.array_equal(np.concatenate([rows for _, rows in pieces]), random)
        assert tables.load_ids(COLLECTION).tolist() == list(range(5000))

    def test_it_says_how_many_dimensions_fit(self):
        with pytest.raises(StoreError, match="1 to 16,000 dimensions, not 20,000"):
            tables.create_table(COLLECTION, 20_000)

    def test_it_counts(self):
        assert tables.count_rows(COLLECTION) == 0
        tables.create_table(COLLECTION, 2)
        tables.insert_rows(COLLECTION, np.arange(2), vectors(EAST, WEST))
        tables.insert_rows(COLLECTION, np.empty(0, np.int64), np.empty((0, 2), np.float32))
        assert tables.count_rows(COLLECTION) == 2

    def test_deleted_table_frees_its_name(self):
        tables.create_table(COLLECTION, 2)
        tables.insert_rows(COLLECTION, np.array([0]), vectors(EAST))
        drop_table(COLLECTION)
        drop_table(COLLECTION)
        assert tables.count_rows(COLLECTION) == 0
        tables.create_table(COLLECTION, 3)
        assert tables.count_rows(COLLECTION) == 0

    def test_a_name_is_taken_once(self):
        tables.create_table(COLLECTION, 2)
        with pytest.raises(StoreError, match="already exists"):
            tables.create_table(COLLECTION, 2)
