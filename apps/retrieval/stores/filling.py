"""Collections in folders of this machine: filled whole or not at all, sealed, and verified when they are opened."""

import json
import logging
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.stores.base import Collection, Store, StoreError, Vectors
from apps.retrieval.stores.sharing import filling_lock, is_open, marks_of_dead, open_mark, own_folder, tidy
from benchbench.errors import told
from benchbench.ir.planning.ann import Ann
from benchbench.local_files.placing import OutputError, make_folder, place_pieces
from benchbench.local_files.sealed import Identity, identity_of, is_still

SEAL = "filled.json"
BLOCK_BYTES = 2**20

Facts = dict[str, Any]


def seal_folder(folder: Path, facts: Mapping[str, Any]) -> None:
    """Seal the files in a folder as they are: `facts` about them are kept with `files` and their `bytes` in sum."""
    files = checksums(folder)
    sealed = {**facts, "files": files, "bytes": sum(size for size, _ in files.values())}
    place_pieces([json.dumps(sealed | {"crc32": _of_facts(sealed)})], folder / SEAL)


def read_seal(folder: Path) -> Facts:
    """Return the facts and files of a sealed folder. Raises FileNotFoundError; StoreError where the seal is damaged."""
    try:
        sealed = json.loads((folder / SEAL).read_bytes())
        if sealed.pop("crc32") == _of_facts(sealed):
            return dict(sealed)
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise StoreError(f"{folder / SEAL} is damaged.")


def checksums(folder: Path) -> dict[str, list[int]]:
    """Return the length and the CRC-32 of each file in a folder but the seal. Cached files take 0.5 s per GB."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL)
    return {str(path.relative_to(folder)): [path.stat().st_size, _of_file(path)] for path in files}


def _of_file(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _of_facts(facts: Facts) -> int:
    return zlib.crc32(json.dumps(facts).encode())


log = logging.getLogger(__name__)

FULL_BYTES = 2**20  # of a disk on which less is free


class OpenCollection:
    """A collection that is open, the `version` of its store, its `bytes` on the disk, and how long it took to fill.

    It is closed by `close`, or when nothing refers to it any more, or at the end of the process.
    """

    def __init__(self, collection: Collection, facts: Facts, files: dict[Path, Identity], closing: ExitStack) -> None:
        self.collection = collection
        self.version: str = facts["version"]
        self.bytes: int = facts["bytes"]
        self.build_seconds: float = facts["build_seconds"]
        self._files = files
        # Not weakref.finalize: a worker is a child of multiprocessing's, which calls no function of atexit's.
        self.close = Finalize(self, closing.close, exitpriority=0)

    @property
    def is_current(self) -> bool:
        """Whether its files are as they were verified: none was written, replaced or deleted since."""
        return all(is_still(file, identity) for file, identity in self._files.items())


def open_collection(folder: Path, store: Store, setting: Ann, vectors: Vectors, *, holds: str) -> OpenCollection:
    """Open the collection in `folder`; fill it with `vectors` (n, d), n > 0, first, unless it is there and sound.

    It is sound where its seal names this content (`holds`), version of the store and way of filling, its files are
    those of the seal to the last byte, it holds n vectors of d dimensions, and no process died while it was open. Of
    several processes one fills and the others wait, WAIT_SECONDS at most: then they fill a folder of their own, as they
    do where another has the collection open, maybe by another version of the store, and may read its files at any
    time. Verifying reads the files, 0.5 s per GB from the cache. Raises StoreError and OutputError.
    """
    make_folder(folder.parent)
    identity = {
        "holds": fingerprint(content=holds, method=setting.name, **setting.build),
        "version": installed_version(store),
        "shape": list(vectors.shape),
    }
    with filling_lock(folder.parent) as alone, ExitStack() as closing:
        if alone:
            tidy(folder)
        else:
            log.warning("%s waits too long for another process: it is filled once more for this one.", folder)
            folder = closing.enter_context(own_folder(folder))
        collection = _reopen(folder, store, setting, identity, closing)
        if collection is None:
            if is_open(folder):
                log.warning("%s is open in another process: it is filled once more for this one.", folder)
                folder = closing.enter_context(own_folder(folder))
            _fill(folder, store, setting, vectors, identity)
            collection = _open(folder, store, setting, identity, closing)
        return collection


def collection_name(setting: Ann) -> str:
    """Name the folder that a setting searches: equal builds, one name."""
    return "_".join([setting.store, setting.method, *map(str, setting.build.values())])


def is_filled(folder: Path) -> bool:
    """Whether a collection was filled there; whether it is still whole shows when it is opened."""
    return (folder / SEAL).exists()


def installed_version(store: Store) -> str:
    """Return the version of the store's package."""
    return version(next(iter(store.packages)))


def _reopen(folder: Path, store: Store, setting: Ann, identity: Facts, closing: ExitStack) -> OpenCollection | None:
    """Open the collection in a folder; None where there is none that is sound."""
    if not is_filled(folder):
        return None
    try:
        if marks_of_dead(folder):
            raise StoreError(f"A process died while it had {folder} open.")
        return _open(folder, store, setting, identity, closing)
    except OutputError:
        raise
    except Exception as error:  # of any class: it is the store's word for files that it cannot read
        # No traceback: a log handler that keeps it would keep the collection open that is made next.
        log.warning("%s is filled again. %s", folder, told(error))
        return None


def _open(folder: Path, store: Store, setting: Ann, identity: Facts, closing: ExitStack) -> OpenCollection:
    """Verify and open the collection in a folder; what closing it takes joins `closing`.

    A store that writes to its files when it opens them opens a copy, so that the sealed ones never change.
    """
    facts = read_seal(folder)
    if any(facts.get(key) != value for key, value in identity.items()):
        raise StoreError(f"{folder} was filled with something else.")
    with ExitStack() as opening:
        opening.enter_context(open_mark(folder))  # before the store reads a byte, which may end the process
        place = folder if store.fixed else opening.enter_context(_copy(folder))
        files = _identities(place, facts)
        if checksums(place) != facts["files"]:
            raise StoreError(f"{folder} is damaged: its files are not those that were sealed.")
        collection = store.open(place, setting)
        opening.callback(collection.close)
        count, dimension = collection.shape
        if [count, dimension] != identity["shape"]:
            raise StoreError(
                f"The store {store.name} {identity['version']} was filled with {identity['shape'][0]:,} vectors and "
                f"holds {count:,} of {dimension:,} dimensions: it is not searched. Try another version of it."
            )
        files = files if store.fixed else _identities(place, facts)
        closing.enter_context(opening.pop_all())
        return OpenCollection(collection, facts, files, closing.pop_all())


def _identities(folder: Path, facts: Facts) -> dict[Path, Identity]:
    return {folder / name: identity_of(os.stat(folder / name)) for name in facts["files"]}


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    with own_folder(folder) as copy:
        with _naming_a_full_disk(folder):
            shutil.copytree(folder, copy)
        yield copy


def _fill(folder: Path, store: Store, setting: Ann, vectors: Vectors, identity: Facts) -> None:
    """Fill and seal a folder that replaces, as a whole, what is in this place."""
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        started = time.perf_counter()
        with _naming_a_full_disk(folder):
            store.fill(part, vectors, setting)
        seal_folder(part, identity | {"build_seconds": round(time.perf_counter() - started, 3)})
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        for mark in marks_of_dead(folder):
            mark.unlink()
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _naming_a_full_disk(folder: Path) -> Iterator[None]:
    """Say in a sentence that the disk is full, for which each store has its own error."""
    try:
        yield
    except Exception as error:
        if shutil.disk_usage(folder.parent).free > FULL_BYTES:
            raise
        raise OutputError(
            f"{folder} cannot be written: No space left on device. Free its disk, then try again; or have "
            "BENCHBENCH_VECTOR_DIR name a folder on another."
        ) from error
