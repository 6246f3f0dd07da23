"""Folders of stores that one process has for itself, and what killed processes leave."""

import fcntl
import multiprocessing
import os
import time
from contextlib import contextmanager

import pytest

from apps.retrieval.stores import filling, sharing
from apps.retrieval.stores.filling import name_collection
from apps.retrieval.stores.sharing import LEFT_SECONDS
from benchbench.ir.planning.ann import Ann
from tests.retrieval.arms import keep, require_installed, unit

TEXT = "sqlite_vec:exact"
FORK = multiprocessing.get_context("fork")  # as the pool starts its workers


@pytest.fixture(autouse=True)
def needs():
    require_installed(TEXT)


@contextmanager
def lock_path(path):
    """Hold a lock as another process would."""
    lock = os.open(path, os.O_RDONLY | (0 if path.is_dir() else os.O_CREAT))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def make_left(folder, name, *, seconds):
    """A folder that someone made so long ago."""
    left = folder / name
    left.mkdir()
    (left / "index").write_bytes(b"half")
    os.utime(left, (time.time() - seconds,) * 2)
    return left


def test_a_worker_s_own_folder_goes_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "WAIT_SECONDS", 0)

    left_open = []

    def work():
        left_open.append(keep(tmp_path, TEXT, unit(5, 8, 0)))
        assert len(list(tmp_path.glob("own.*/*/filled.json"))) == 1

    with lock_path(tmp_path / "lock"):
        worker = FORK.Process(target=work)
        worker.start()
        worker.join()
    assert worker.exitcode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("begins", [".", "own."])
def test_leftovers_of_killed_processes_are_removed_on_next_use(tmp_path, begins):
    name = name_collection(Ann.parse(TEXT))
    keep(tmp_path, TEXT, unit(5, 8, 0))
    old = make_left(tmp_path, f"{begins}{name}.old", seconds=LEFT_SECONDS + 60)
    new = make_left(tmp_path, f"{begins}{name}.new", seconds=LEFT_SECONDS / 2)
    remaining = make_left(tmp_path, f"{begins}{name}_2.old", seconds=LEFT_SECONDS + 60)
    keep(tmp_path, TEXT, unit(5, 8, 0))
    assert [path.exists() for path in (old, new, remaining)] == [False, True, True]


def test_a_folder_of_a_process_that_lives_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "WAIT_SECONDS", 0)
    with lock_path(tmp_path / "lock"):
        opened = keep(tmp_path, TEXT, unit(5, 8, 0))
    (personal,) = tmp_path.glob("own.*")
    os.utime(personal, (0, 0))
    keep(tmp_path, TEXT, unit(5, 8, 0))
    assert personal.exists()
    opened.close()
    assert not personal.exists()


@pytest.mark.parametrize("text", ["sqlite_vec:exact", "chromadb:hnsw", "faiss:hnsw", "lancedb:exact"])
def test_two_versions_of_a_store_live_apart(text, tmp_path, monkeypatch):
    require_installed(text)
    rows, setting = unit(50, 8, 0), Ann.parse(text)
    versions = iter("121")
    monkeypatch.setattr(filling, "find_version", lambda _: next(versions))
    first, second = keep(tmp_path, text, rows), keep(tmp_path, text, rows)
    assert (first.version, second.version) == ("1", "2")
    for stored in (first, second):
        assert stored.collection.build_nominator(setting, None)(rows[7], 1).tolist() == [7]
    again = keep(tmp_path, text, rows)  # by a third process, of the first version
    assert (again.version, again.build_seconds) == ("1", first.build_seconds)


def test_a_closed_collection_is_filled_in_its_place(tmp_path, monkeypatch):
    versions = iter("12")
    monkeypatch.setattr(filling, "find_version", lambda _: next(versions))
    keep(tmp_path, TEXT, unit(50, 8, 0))
    assert keep(tmp_path, TEXT, unit(50, 8, 0)).version == "2"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["lock", name_collection(Ann.parse(TEXT))])
