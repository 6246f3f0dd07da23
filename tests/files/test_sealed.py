"""Sealed arrays: what is read is what was written, or it is made anew."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchbench.local_files import sealed
from benchbench.local_files.placing import OutputError
from benchbench.local_files.sealed import SEAL_BYTES, kept_array
from tests.files.spoiling import spoil, ways

ROWS = np.arange(40, dtype=np.float32).reshape(10, 4)


class Kept:
    """An array in a file, and how often it was made."""

    def __init__(self, file: Path, rows: Any = ROWS) -> None:
        self.file, self.rows, self.made = file, rows, 0

    def get(self, *, dtype: Any = np.float32, shape: tuple[int, ...] = (10, 4), holds: str = "a") -> Any:
        def make() -> list[Any]:
            self.made += 1
            return [self.rows[:7], self.rows[7:]]

        return kept_array(self.file, dtype, shape, holds=holds, make=make)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "folder" / "a.vectors")


def test_it_is_made_once_and_mapped_read_only(kept: Kept) -> None:
    for _ in range(2):
        found = kept.get()
        assert np.array_equal(found, ROWS)
        assert found.dtype == np.float32
        assert not found.flags.writeable
        assert isinstance(found.base, np.memmap)
    assert kept.made == 1
    assert os.listdir(kept.file.parent) == ["a.vectors"]


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=name) for name, way in ways(row=16, header=slice(-256, None)).items()]
)
def test_a_damaged_file_is_made_anew(kept: Kept, way: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept.get()
    spoil(kept.file, way)
    assert np.array_equal(kept.get(), ROWS)
    assert kept.made == 2
    assert f"{kept.file} is damaged, or was made of something else: it is made anew." in caplog.text


def test_damage_that_keeps_size_and_times_is_found_by_another_process(kept: Kept) -> None:
    kept.get()
    before = kept.file.stat()
    spoil(kept.file, lambda content: content[::-1])
    os.utime(kept.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert np.array_equal(kept.get(), ROWS)


def test_a_sound_file_of_something_else_is_made_anew(kept: Kept, tmp_path: Path) -> None:
    others = (
        Kept(tmp_path / "1", ROWS[::-1]).get(holds="b"),  # of another index: the same rows in another order
        Kept(tmp_path / "2", ROWS.astype(np.int8)).get(dtype=np.int8),
        Kept(tmp_path / "3", ROWS.reshape(20, 2)).get(shape=(20, 2)),
        Kept(tmp_path / "4").get(dtype=np.int32),  # of the same size
    )
    assert len(others) == 4
    for number in range(1, 5):
        kept.get()
        kept.file.write_bytes((tmp_path / str(number)).read_bytes())
        assert np.array_equal(kept.get(), ROWS)
        assert kept.made == 1 + number


def test_any_number_of_rows_where_the_reader_does_not_know(kept: Kept) -> None:
    for _ in range(2):
        assert kept.get(shape=(-1, 4)).shape == (10, 4)
    kept.file.write_bytes(kept.file.read_bytes()[16:])
    assert kept.get(shape=(-1, 4)).shape == (10, 4)
    assert kept.made == 2


def test_it_is_read_whole_once_until_somebody_writes_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.get()
    reads = []
    read = sealed._is_sealed
    monkeypatch.setattr(sealed, "_is_sealed", lambda *args: reads.append(1) or read(*args))
    kept.get()
    assert not reads
    kept.file.write_bytes(kept.file.read_bytes())
    kept.get()
    assert len(reads) == 1


def test_it_has_its_name_only_when_it_is_on_the_disk(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the content, then the name, then the folder that holds the name."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted(descriptor: int) -> None:
        done.append("folder" if os.path.isdir(f"/dev/fd/{descriptor}") else f"{os.fstat(descriptor).st_size} bytes")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("name") or replace(*paths))
    kept.get()
    assert done == [f"{ROWS.nbytes + SEAL_BYTES} bytes", "name", "folder"]


def test_what_a_killed_process_left_goes_after_an_hour(kept: Kept) -> None:
    kept.file.parent.mkdir()
    old, new = (kept.file.parent / f".a.vectors.{name}" for name in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    kept.get()
    assert (old.exists(), new.exists()) == (False, True)


def test_rows_of_another_number_are_an_error_and_leave_no_other_array(kept: Kept) -> None:
    with pytest.raises(OutputError, match="does not hold what was just written to it"):
        kept.get(shape=(11, 4))


def test_a_full_disk_is_a_sentence_and_leaves_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"a\.vectors cannot be written: No space left on device"):
        kept.get()
    assert os.listdir(kept.file.parent) == []
