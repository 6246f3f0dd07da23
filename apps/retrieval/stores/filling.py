"""Collections in folders of this machine: filled whole or not at all, verified when they are opened."""

import fcntl
import json
import logging
import os
import shutil
import tempfile
import time
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.stores.base import Collection, Store, StoreError, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.local_files.placing import OutputError, make_folder, place_pieces

log = logging.getLogger(__name__)

MARKER = "filled.json"
OWN = "own."  # with what the name of a folder begins that one process has for itself
LEFT_SECONDS = 3600
WAIT_SECONDS = 60.0  # for another process that fills: one that stands still holds up nobody for longer
BLOCK_BYTES = 2**20
FULL_BYTES = 2**20  # of a disk on which less is free


@dataclass(frozen=True, slots=True)
class Kept:
    """An open collection, the version of its store, its size on the disk, and how long it took to fill."""

    collection: Collection
    version: str
    bytes: int
    build_seconds: float


def kept_collection(folder: Path, store: Store, setting: Ann, vectors: Vectors, *, holds: str) -> Kept:
    """Return the collection in `folder`, filled with `vectors` (n, d), n > 0, where there is none.

    It is filled anew where it is not what was filled for `holds`, by this version of the store and in this way; where
    it does not hold n vectors of d dimensions; where a file of a store that keeps its files as they are is damaged. Of
    several processes one fills and the others wait, WAIT_SECONDS at most: then they fill a folder of their own, as they
    do where another has the collection open, maybe by another version of the store, and may read its files at any
    time. Raises StoreError, OutputError, and what the store raises.
    """
    make_folder(folder.parent)
    identity = {
        "holds": fingerprint(content=holds, method=setting.name, **setting.build),
        "version": installed_version(store),
        "shape": list(vectors.shape),
    }
    with _alone(folder.parent) as alone:
        if alone:
            _tidy(folder)
        folder = folder if alone else _own(folder)
        kept = _opened(folder, store, setting, identity)
        if kept is None:
            folder = _own(folder) if _is_held(folder) else folder
            kept = _filled(folder, store, setting, vectors, identity)
        _hold(folder, kept.collection)
        return kept


def collection_name(setting: Ann) -> str:
    """Name the folder that a setting searches: equal builds, one name."""
    return "_".join([setting.store, setting.method, *map(str, setting.build.values())])


def is_filled(folder: Path) -> bool:
    """Whether a collection was filled there; whether it is still whole shows when it is opened."""
    return (folder / MARKER).exists()


def installed_version(store: Store) -> str:
    """Return the version of the store's package."""
    return version(next(iter(store.packages)))


def _opened(folder: Path, store: Store, setting: Ann, identity: dict[str, Any]) -> Kept | None:
    """The collection in a folder; None where there is none, or another than is stated."""
    try:
        marker = json.loads((folder / MARKER).read_text())
        if {key: marker.get(key) for key in identity} != identity or (
            store.fixed and marker["files"] != _files(folder)
        ):
            log.warning("%s is damaged, or was made of something else: it is filled anew.", folder)
            return None
        collection = store.open(folder, setting)
        if list(collection.shape) == identity["shape"]:
            return Kept(collection, marker["version"], marker["bytes"], marker["build_seconds"])
        log.warning("%s holds %s vectors by dimensions: it is filled anew.", folder, collection.shape)
    except FileNotFoundError:
        pass
    except Exception:  # of whatever class: it is the store's word for files that it cannot read
        log.warning("%s cannot be opened: it is filled anew.", folder, exc_info=True)
    return None


def _filled(folder: Path, store: Store, setting: Ann, vectors: Vectors, identity: dict[str, Any]) -> Kept:
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        started = time.perf_counter()
        with _naming_a_full_disk(part, folder):
            store.fill(part, vectors, setting)
        seconds = round(time.perf_counter() - started, 3)
        files = _files(part)
        size = sum(size for size, _ in files.values())
        facts = identity | {"files": files, "bytes": size, "build_seconds": seconds}
        place_pieces([json.dumps(facts)], part / MARKER)  # last: without it the folder counts as not filled
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    collection = store.open(folder, setting)
    if list(collection.shape) != identity["shape"]:
        count, dimension = collection.shape
        raise StoreError(
            f"The store {store.name} {identity['version']} was filled with {len(vectors):,} vectors and holds "
            f"{count:,} of {dimension:,} dimensions: it is not searched. Try another version of it."
        )
    return Kept(collection, identity["version"], size, seconds)


@contextmanager
def _naming_a_full_disk(part: Path, folder: Path) -> Iterator[None]:
    """Say in a sentence that the disk is full, for which each store has its own error."""
    try:
        yield
    except Exception as error:
        if shutil.disk_usage(part).free > FULL_BYTES:
            raise
        raise OutputError(
            f"{folder} cannot be written: No space left on device. Free its disk, then try again; or have "
            "BENCHBENCH_VECTOR_DIR name a folder on another."
        ) from error


def _files(folder: Path) -> dict[str, list[int]]:
    """The size and the CRC-32 of each file of a collection."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARKER)
    return {str(path.relative_to(folder)): [path.stat().st_size, _checksum(path)] for path in files}


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _tidy(folder: Path) -> None:
    """Delete what a process that was killed has left: while it filled `folder`, or had one of its own instead."""
    for left in (*folder.parent.glob(f".{folder.name}.*"), *folder.parent.glob(f"{OWN}{folder.name}.*")):
        with suppress(FileNotFoundError):  # it went with its process
            if left.stat().st_mtime < time.time() - LEFT_SECONDS and not _is_held(left):
                shutil.rmtree(left, ignore_errors=True)


def _is_held(folder: Path) -> bool:
    """Whether a folder is there that is a process's own, or a collection that is open; by a process that lives."""
    if not folder.exists():
        return False
    lock = os.open(folder, os.O_RDONLY)
    try:
        return not _locked(lock)
    finally:
        os.close(lock)


def _hold(folder: Path, collection: Collection) -> None:
    """Let others see that a collection is open, as long as it is."""
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    weakref.finalize(collection, os.close, lock)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Let one process at a time look at, and fill, the collections of an index; a killed one gives the lock back.

    Tells whether this one is alone: not where another has had the lock for WAIT_SECONDS.
    """
    lock, until = os.open(folder / "lock", os.O_RDONLY | os.O_CREAT, 0o666), time.monotonic() + WAIT_SECONDS
    try:
        while not (alone := _locked(lock)) and time.monotonic() < until:
            time.sleep(0.1)
        yield alone
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _own(folder: Path) -> Path:
    """Return a folder for this process alone, which goes with it; where it is killed, with the next that looks."""
    log.warning("%s is in use by another process: it is filled once more for this one.", folder)
    own = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{OWN}{folder.name}."))
    _locked(os.open(own, os.O_RDONLY))  # until this process ends
    # A worker is a child of multiprocessing's, which calls no function of atexit's.
    Finalize(None, shutil.rmtree, (own,), {"ignore_errors": True}, exitpriority=0)
    return own / folder.name
