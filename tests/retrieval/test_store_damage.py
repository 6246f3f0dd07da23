"""Damaged files of stores: no matter what happens to them, a search finds what it found in sound ones."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import SEAL, name_collection
from benchbench.ir.planning.ann import Ann
from benchbench.process import reset_all
from tests.files.samples import spoil, ways
from tests.retrieval.arms import keep, require_installed, unit
from tests.retrieval.random_vectors import make_random

TEXTS = [
    *("sqlite_vec:exact", "chromadb:hnsw(ef_search=500)", "faiss:hnsw(ef_search=500)", "lancedb:exact"),
    "compressed(rescore=200)",
]
WAYS = ways(row=64, header=slice(0, 100))
ROWS, QUERIES = unit(200, 16, 0), unit(5, 16, 1)

KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import name_collection, open_collection
from benchbench.ir.planning.ann import Ann
folder, setting = Path(sys.argv[1]), Ann.parse(sys.argv[2])
rows = np.load(folder / "rows.npy")
opened = open_collection(folder / name_collection(setting), STORES[setting.store], setting, rows, holds="")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_every_store_is_damaged_here():
    assert {Ann.parse(text).store for text in TEXTS} == set(STORES)


@pytest.fixture(params=TEXTS)
def text(request):
    require_installed(request.param)
    return str(request.param)


@pytest.fixture
def fills(monkeypatch):
    filled = []

    def counted(fill):
        return lambda folder, *more: (filled.append(folder), fill(folder, *more))[1]

    for store in STORES.values():
        monkeypatch.setattr(store, "fill", counted(store.fill))
    return filled


def search_copy(folder, text):
    opened = keep(folder, text, ROWS)  # open as long as it is referred to
    nominate = opened.collection.build_nominator(Ann.parse(text), None)
    return [sorted(nominate(query, 10).tolist()) for query in QUERIES]


def files_of(folder):
    """The files of a collection, the largest first; the marker last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: (path.name == SEAL, -path.stat().st_size))


class TestAFolder:
    @pytest.fixture
    def folder(self, text, tmp_path):
        """The folder of a collection that was filled and closed."""
        self.before = search_copy(tmp_path, text)
        return tmp_path / name_collection(Ann.parse(text))

    @pytest.mark.parametrize("way", ["cut to half", "second half zeroed", "bits flipped", "emptied"])
    def test_damage_of_the_largest_file_is_mended(self, text, way, folder, fills):
        spoil(files_of(folder)[0], WAYS[way])
        assert (search_copy(folder.parent, text), len(fills)) == (self.before, 1)

    def test_a_flipped_bit_is_mended(self, text, folder, monkeypatch):
        sound, store, filled = folder.parent / "sound", STORES[Ann.parse(text).store], []
        shutil.copytree(folder, sound, ignore=shutil.ignore_patterns(SEAL))

        def fill(empty, *_):
            filled.append(shutil.copytree(sound, empty, dirs_exist_ok=True))

        monkeypatch.setattr(store, "fill", fill)
        names = [path.relative_to(folder) for path in files_of(folder) if path.stat().st_size]
        for name in names:
            spoil(folder / name, WAYS["a bit flipped"])
            assert search_copy(folder.parent, text) == self.before
        assert len(filled) == len(names) >= 2

    def test_a_missing_or_added_file_is_mended(self, text, folder, fills):
        files_of(folder)[0].unlink()
        assert (search_copy(folder.parent, text), len(fills)) == (self.before, 1)
        (folder / "more.bin").write_bytes(b"more")
        assert (search_copy(folder.parent, text), len(fills)) == (self.before, 2)
        assert sorted(path.name for path in folder.parent.iterdir()) == sorted(["lock", folder.name])

    def test_it_is_opened_as_often_as_it_is_sound(self, text, folder, fills):
        first, second = keep(folder.parent, text, ROWS), keep(folder.parent, text, ROWS)
        assert search_copy(folder.parent, text) == self.before
        del first, second
        assert search_copy(folder.parent, text) == self.before
        assert not fills
        assert sorted(path.name for path in folder.parent.iterdir()) == sorted(["lock", folder.name])


class TestAProcessThatDies:
    def kill_one(self, folder, text):
        """Let a process open the collection and end silently."""
        np.save(folder / "rows.npy", ROWS)
        command = [sys.executable, "-c", KILLED, str(folder), text]
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False)
        (folder / "rows.npy").unlink()
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()

    @pytest.mark.parametrize(
        "text", [TEXTS[0], *(pytest.param(text, marks=pytest.mark.thorough) for text in TEXTS[1:])]
    )
    def test_its_collection_is_filled_again(self, text, tmp_path, fills):
        require_installed(text)
        self.kill_one(tmp_path, text)
        before = search_copy(tmp_path, text)
        assert len(fills) == 1
        assert search_copy(tmp_path, text) == before
        assert len(fills) == 1

    def test_others_keep_theirs_open(self, tmp_path, fills):
        text = "sqlite_vec:exact"
        require_installed(text)
        folder = tmp_path / name_collection(Ann.parse(text))
        living = keep(tmp_path, text, ROWS)
        sealed = {path: path.stat().st_ino for path in files_of(folder)}
        self.kill_one(tmp_path, text)
        third = keep(tmp_path, text, ROWS)  # filled for itself
        assert len(fills) == 2
        assert {path: path.stat().st_ino for path in files_of(folder)} == sealed
        for stored in (living, third):
            assert stored.collection.build_nominator(Ann.parse(text), None)(ROWS[7], 1).tolist() == [7]
        del stored, living, third
        keep(tmp_path, text, ROWS)
        assert len(fills) == 3
        assert {path: path.stat().st_ino for path in files_of(folder)} != sealed
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["lock", folder.name])


@pytest.mark.django_db
class TestAnOpenCollection:
    @pytest.fixture
    def index(self, db):
        reset_all()
        return make_random()

    def search(self, index, text):
        queries = unit(5, 16, 1)
        return [scored.ids.tolist() for scored in open_index(index).approximate(queries, 10, Ann.parse(text)).lists]

    def damage(self, index):
        """Zero the second half of every file of the stores, in place."""
        for path in locate_collections(index).rglob("*"):
            if path.is_file() and path.name != SEAL and (size := path.stat().st_size):
                with path.open("r+b") as file:
                    file.seek(size // 2)
                    file.write(bytes(size - size // 2))

    def test_damage_is_mended_at_the_next_search(self, text, index, fills):
        before = self.search(index, text)
        self.damage(index)
        assert (self.search(index, text), len(fills)) == (before, 2)
        assert (self.search(index, text), len(fills)) == (before, 2)

    def test_a_deleted_folder_is_mended_at_the_next_search(self, text, index, fills):
        before = self.search(index, text)
        shutil.rmtree(locate_collections(index))
        assert (self.search(index, text), len(fills)) == (before, 2)

    def test_damage_during_a_search_is_repaired(self, text, index, fills, monkeypatch):
        before, requests = self.search(index, text), []
        collection = open_index(index).collections.ensure_filled(Ann.parse(text)).collection
        nominator = collection.build_nominator

        def damaging(*supplied):
            nominate = nominator(*supplied)

            def damaged(query, depth):
                requests.append(depth)
                if len(requests) == 3:
                    self.damage(index)
                return nominate(query, depth)

            return damaged

        monkeypatch.setattr(collection, "build_nominator", damaging)
        assert (self.search(index, text), len(fills)) == (before, 2)

    def test_a_passing_error_is_no_query_s(self, text, index, fills):
        before = self.search(index, text)
        open_index(index).collections.ensure_filled(Ann.parse(text)).collection.build_nominator = lambda *_: 1 / 0
        assert (self.search(index, text), len(fills)) == (before, 1), "its files were sound"

    def test_a_repeated_error_is_the_query_s(self, text, index, monkeypatch):
        kind = type(open_index(index).collections.ensure_filled(Ann.parse(text)).collection)
        tried = []
        monkeypatch.setattr(kind, "build_nominator", lambda *_: tried.append(1) or 1 / 0)
        with pytest.raises(ZeroDivisionError):
            self.search(index, text)
        assert tried == [1, 1]
