"""A cache of records by key, packed in a few files of a folder that many processes read and append to.

A pack only grows, one record after the other: a header (key, size, checksums), then the content. Every read is checked,
so a record may be used before it is on the disk (`sync` flushes it). A record damaged by a power cut, a killed process
or a bad disk counts as missing and is added again. Of two records with one key the later counts.
"""

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from benchbench.local_files.placing import OutputError, make_folder, sync_path

HEADER = struct.Struct("<4s32sII")  # magic, key, bytes of content, CRC-32 of key and content
HEADER_CHECK = struct.Struct("<I")  # CRC-32 of the header
MAGIC = b"BBP1"
OVERHEAD = HEADER.size + HEADER_CHECK.size
FRESH_SECONDS = 86_400  # a pack's time of use is accurate to a day


class Location(NamedTuple):
    """Position of a record: its pack, its start there, and its size in bytes with the header."""

    pack: str
    start: int
    size: int


class Packs:
    """The records of one folder. Keys are 32 bytes.

    Any process may read at any time; `writing` lets one process at a time add. Names of packs ascend with time, so the
    last one is the newest, to which records are added.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._locations: dict[bytes, Location] = {}
        self._ends: dict[str, int] = {}  # where the last record of each pack ends
        self._unsynced: set[str] = set()  # packs that this process added to

    def find_keys(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of the keys that have a record, without reading it."""
        if not self._locations.keys() >= set(keys):
            self._refresh()
        return self._locations.keys() & set(keys)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, memoryview]:
        """Return the contents of the undamaged records by key, and update the time of use of their packs."""
        records = self._read(keys)
        if missing := [key for key in keys if key not in records]:
            self._refresh()
            records |= self._read(missing)
        return records

    def add(self, key: bytes, content: bytes, *, max_bytes: int) -> None:
        """Add a record to the newest pack, or to a new one.

        A new pack begins if the newest would exceed `max_bytes`, or ends with half a record of a killed process.
        Call this while holding `writing`, after `read` found no record. Raises OutputError, for example if the disk is
        full.
        """
        header = HEADER.pack(MAGIC, key, len(content), zlib.crc32(content, zlib.crc32(key)))
        record = header + HEADER_CHECK.pack(zlib.crc32(header)) + content
        _, size, newest = max(_list_packs(self.folder), key=lambda pack: pack[2], default=(0, 0, Path()))
        name, start = newest.name, self._ends.get(newest.name, 0)
        if not start or start != size or start + len(record) > max_bytes:
            name, start = f"{time.time_ns():020}-{uuid4().hex[:8]}.pack", 0
            make_folder(self.folder)
        try:
            with (self.folder / name).open("ab") as pack:
                pack.write(record)
        except OSError as error:
            if not start:  # a new pack without a whole record
                (self.folder / name).unlink(missing_ok=True)
            raise OutputError(
                f"{self.folder / name} cannot be written: {error.strerror or error}. Free "
                f"{len(record):,} bytes there, or use another folder."
            ) from None
        self._locations[key] = Location(name, start, len(record))
        self._ends[name] = start + len(record)
        self._unsynced.add(name)

    def sync(self) -> None:
        """Flush added records to the disk: one `fsync` of each pack, and one of the folder. Raises OutputError."""
        names, self._unsynced = self._unsynced, set()
        for path in [self.folder / name for name in names] + ([self.folder] if names else []):
            try:
                sync_path(path)
            except FileNotFoundError:
                continue  # another made room
            except OSError as error:
                raise OutputError(f"{path} cannot be saved to disk: {error.strerror or error}.") from None

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, memoryview]:
        records = {}
        entries = sorted((self._locations[key], key) for key in set(keys) & self._locations.keys())
        for name, group in groupby(entries, lambda location: location[0].pack):
            try:
                pack = os.open(self.folder / name, os.O_RDONLY)
            except FileNotFoundError:
                self._forget(name)
                continue
            try:
                if os.fstat(pack).st_mtime < time.time() - FRESH_SECONDS:
                    os.utime(pack)  # open as it is: it may have been deleted meanwhile
                for location, key in group:
                    content = _parse_record(_read_bytes(pack, location), key)
                    if content is not None:
                        records[key] = content
                    elif name in self._ends:
                        self._forget(name)  # and look at all of it again
            finally:
                os.close(pack)
        return records

    def _refresh(self) -> None:
        """Update the index with packs and records that other processes added or deleted."""
        sizes = {path.name: size for _, size, path in _list_packs(self.folder)}
        for name in self._ends.keys() - sizes.keys():
            self._forget(name)
        for name in sorted(sizes):
            if sizes[name] > self._ends.get(name, 0):
                with suppress(FileNotFoundError):
                    self._scan(name)

    def _scan(self, name: str) -> None:
        """Note the new records of a pack; skip damaged ones.

        A record that a later pack has too is ignored: this copy was damaged, or two processes added it.
        """
        with (self.folder / name).open("rb", buffering=0) as pack:
            size, start = os.fstat(pack.fileno()).st_size, self._ends.get(name, 0)
            while start < size:
                header = _parse_header(os.pread(pack.fileno(), OVERHEAD, start))
                if header and start + header[1] <= size:
                    location = Location(name, start, header[1])
                    self._locations[header[0]] = max(location, self._locations.get(header[0], location))
                    self._ends[name] = start = start + header[1]
                elif (skipped := os.pread(pack.fileno(), size - start, start).find(MAGIC, 1)) > 0:
                    start += skipped
                else:  # the end of a record that is being written, or was never finished
                    break

    def _forget(self, name: str) -> None:
        self._ends.pop(name, None)
        self._locations = {key: location for key, location in self._locations.items() if location.pack != name}


def _read_bytes(pack: int, location: Location) -> bytes:
    """Return the bytes at a location of an open pack; none if the disk cannot read them."""
    try:
        return os.pread(pack, location.size, location.start)
    except OSError:
        return b""


def _parse_header(header: bytes) -> tuple[bytes, int] | None:
    """Return key and size of the record with this header; None if the header is invalid."""
    if len(header) < OVERHEAD or HEADER_CHECK.unpack_from(header, HEADER.size)[0] != zlib.crc32(header[: HEADER.size]):
        return None
    magic, key, size, _ = HEADER.unpack_from(header)
    return (key, OVERHEAD + size) if magic == MAGIC else None


def _parse_record(record: bytes, key: bytes) -> memoryview | None:
    """Return the content of a record of `key`; None if it is damaged."""
    if _parse_header(record[:OVERHEAD]) != (key, len(record)):
        return None
    content = memoryview(record)[OVERHEAD:]
    return content if zlib.crc32(content, zlib.crc32(key)) == HEADER.unpack_from(record)[3] else None


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Lock the packs under `root` for adding or deleting. The lock of a killed process is released."""
    make_folder(root)
    lock = os.open(root / "lock", os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def count_packed_bytes(root: Path) -> int:
    """Return the total bytes of all packs in the folders under `root`."""
    return sum(size for _, size, _ in _list_packs(root, "*/"))


def trim_packs(root: Path, max_bytes: int) -> int:
    """Delete the least recently used packs under `root` until at most `max_bytes` remain; return their total."""
    packs = sorted(_list_packs(root, "*/"))
    total = sum(size for _, size, _ in packs)
    for _, size, path in packs:
        if total <= max_bytes:
            break
        path.unlink(missing_ok=True)
        total -= size
    return total


def _list_packs(folder: Path, deeper: str = "") -> Iterator[tuple[float, int, Path]]:
    """Yield time of use, size in bytes and path of each pack."""
    for path in folder.glob(f"{deeper}*.pack"):
        with suppress(FileNotFoundError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path
