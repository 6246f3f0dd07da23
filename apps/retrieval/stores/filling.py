"""Collections in folders of this machine: filled atomically, sealed, and verified when opened."""

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
from apps.retrieval.stores.sharing import filling_lock, find_dead_marks, is_open, open_mark, own_folder, tidy
from benchbench.errors import error_text
from benchbench.ir.planning.ann import Ann
from benchbench.local_files.placing import OutputError, make_folder, write_file_pieces
from benchbench.local_files.sealed import Identity, build_identity, is_unchanged

SEAL = "filled.json"
BLOCK_BYTES = 2**20

Facts = dict[str, Any]


def seal_folder(folder: Path, facts: Mapping[str, object]) -> None:
    """Seal the files in a folder: store `facts`, the checksums of the `files`, and their total `bytes`."""
    files = checksum_files(folder)
    sealed = {**facts, "files": files, "bytes": sum(size for size, _ in files.values())}
    write_file_pieces([json.dumps(sealed | {"crc32": _checksum_facts(sealed)})], folder / SEAL)


def read_seal(folder: Path) -> Facts:
    """Return the facts and files of a sealed folder. Raises FileNotFoundError, StoreError if the seal is damaged."""
    try:
        sealed = json.loads((folder / SEAL).read_bytes())
        if sealed.pop("crc32") == _checksum_facts(sealed):
            return dict(sealed)
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise StoreError(f"{folder / SEAL} is damaged.")


def checksum_files(folder: Path) -> dict[str, list[int]]:
    """Return the length and CRC-32 of each file in a folder except the seal. Takes 0.5 s per GB of cached files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL)
    return {str(path.relative_to(folder)): [path.stat().st_size, _checksum_file(path)] for path in files}


def _checksum_file(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _checksum_facts(facts: Facts) -> int:
    return zlib.crc32(json.dumps(facts).encode())


log = logging.getLogger(__name__)

FULL_BYTES = 2**20  # a disk with less free space is full


class OpenCollection:
    """An open collection, with the `version` of its store, its `bytes` on disk, and the time of filling it.

    `build` is the checksum of its files: a graph that was filled again may find other chunks.
    It is closed by `close`, when garbage collected, or at the end of the process.
    """

    def __init__(self, collection: Collection, facts: Facts, files: dict[Path, Identity], closing: ExitStack) -> None:
        self.collection = collection
        self.version: str = facts["version"]
        self.bytes: int = facts["bytes"]
        self.build_seconds: float = facts["build_seconds"]
        self.build = f"{_checksum_facts(facts['files']):08x}"
        self._files = files
        # Not weakref.finalize: a worker is a child process of multiprocessing, which does not run atexit functions.
        self.close = Finalize(self, closing.close, exitpriority=0)

    @property
    def is_current(self) -> bool:
        """Return whether its files are unchanged since they were verified: not written, replaced or deleted."""
        return all(is_unchanged(file, identity) for file, identity in self._files.items())


def open_collection(folder: Path, store: Store, setting: Ann, vectors: Vectors, *, holds: str) -> OpenCollection:
    """Open the collection in `folder`. Fill it with `vectors` (n, d), n > 0, first if it is missing or invalid.

    Its seal must have this content (`holds`), version of the store and way of filling. Its files must match the seal's
    checksums, and it must have n vectors of d dimensions. No process may have died while it was open. One process
    fills and others wait up to WAIT_SECONDS, then fill their own folder. They also do so if an invalid collection is
    open in another process, which may still read its files. Verifying reads the files, 0.5 s per GB if cached. Raises
    StoreError and OutputError.
    """
    make_folder(folder.parent)
    identity = {
        "holds": fingerprint(content=holds, method=setting.name, **setting.build),
        "version": find_version(store),
        "shape": list(vectors.shape),
    }
    with filling_lock(folder.parent) as alone, ExitStack() as closing:
        if alone:
            tidy(folder)
        else:
            log.warning("%s waits too long for another process, so this process fills its own copy.", folder)
            folder = closing.enter_context(own_folder(folder))
        collection = _reopen(folder, store, setting, identity, closing)
        if collection is None:
            if is_open(folder):
                log.warning("%s is open in another process, so this process fills its own copy.", folder)
                folder = closing.enter_context(own_folder(folder))
            _fill(folder, store, setting, vectors, identity)
            collection = _open(folder, store, setting, identity, closing)
        return collection


def name_collection(setting: Ann) -> str:
    """Return the name of the folder that a setting searches. Settings with equal build options share it."""
    return "_".join([setting.store, setting.method, *map(str, setting.build.values())])


def is_filled(folder: Path) -> bool:
    """Return whether a collection was filled in `folder`. Opening it checks whether it is still valid."""
    return (folder / SEAL).exists()


def find_version(store: Store) -> str:
    """Return the version of the store's package."""
    return version(next(iter(store.packages)))


def _reopen(folder: Path, store: Store, setting: Ann, identity: Facts, closing: ExitStack) -> OpenCollection | None:
    """Open the collection in a folder. None if it is missing or invalid."""
    if not is_filled(folder):
        return None
    try:
        if find_dead_marks(folder):
            raise StoreError(f"A process died while it had {folder} open.")
        return _open(folder, store, setting, identity, closing)
    except OutputError:
        raise
    except Exception as error:  # stores raise errors of any class for unreadable files
        # No traceback: a log handler that holds it would keep the next collection open.
        log.warning("%s is filled again. %s", folder, error_text(error))
        return None


def _open(folder: Path, store: Store, setting: Ann, identity: Facts, closing: ExitStack) -> OpenCollection:
    """Verify and open the collection in a folder. Its cleanup is added to `closing`.

    A store that writes to files on opening gets a copy, so that the sealed ones never change.
    """
    facts = read_seal(folder)
    if any(facts.get(key) != value for key, value in identity.items()):
        raise StoreError(f"{folder} was filled with other vectors or settings.")
    with ExitStack() as opening:
        opening.enter_context(open_mark(folder))  # before the store reads any file, which may crash the process
        source = folder if store.fixed else opening.enter_context(_copy(folder))
        files = _build_identities(source, facts)
        if checksum_files(source) != facts["files"]:
            raise StoreError(f"{folder} is damaged: its files changed after they were sealed.")
        collection = store.open(source, setting)
        opening.callback(collection.close)
        count, dimension = collection.shape
        if [count, dimension] != identity["shape"]:
            raise StoreError(
                f"The store {store.name} {identity['version']} was filled with {identity['shape'][0]:,} vectors and "
                f"holds {count:,} of {dimension:,} dimensions. Try another version of the store."
            )
        files = files if store.fixed else _build_identities(source, facts)
        closing.enter_context(opening.pop_all())
        return OpenCollection(collection, facts, files, closing.pop_all())


def _build_identities(folder: Path, facts: Facts) -> dict[Path, Identity]:
    return {folder / name: build_identity(os.stat(folder / name)) for name in facts["files"]}


@contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    with own_folder(folder) as copy:
        with _convert_disk_errors(folder):
            shutil.copytree(folder, copy)
        yield copy


def _fill(folder: Path, store: Store, setting: Ann, vectors: Vectors, identity: Facts) -> None:
    """Fill and seal a new folder, and replace `folder` with it."""
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        started = time.perf_counter()
        with _convert_disk_errors(folder):
            store.fill(temporary, vectors, setting)
        seal_folder(temporary, identity | {"build_seconds": round(time.perf_counter() - started, 3)})
        shutil.rmtree(folder, ignore_errors=True)
        temporary.rename(folder)
        for mark in find_dead_marks(folder):
            mark.unlink()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _convert_disk_errors(folder: Path) -> Iterator[None]:
    """Replace the error of a store by an OutputError if the disk is full."""
    try:
        yield
    except Exception as error:
        if shutil.disk_usage(folder.parent).free > FULL_BYTES:
            raise
        raise OutputError(
            f"{folder} cannot be written: No space left on device. Free disk space and try again, or set "
            "BENCHBENCH_VECTOR_DIR to another disk."
        ) from error
