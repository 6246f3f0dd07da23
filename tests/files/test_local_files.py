"""Files that appear whole or not at all, and sealed arrays."""

import gzip
import io
import os
import stat
import zipfile
import zlib

import numpy as np
import pytest

from benchbench.errors import BenchbenchError, error_text
from benchbench.local_files.npz import ArrayBlocks, view_npz, write_npz
from benchbench.local_files.placing import OutputError, scratch_folder, write_directory, write_file_pieces, write_zip
from benchbench.local_files.sealed import SEAL_BYTES, load_array
from tests.files.samples import spoil, ways


def broken():
    yield "half"
    raise ZeroDivisionError


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_file_pieces(broken(), tmp_path / "a")
    assert not os.listdir(tmp_path)
    write_file_pieces(["ü", b"\xff"], tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == "ü".encode() + b"\xff"
    with pytest.raises(ZeroDivisionError):
        write_file_pieces(broken(), tmp_path / "a", force=True)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == "ü".encode() + b"\xff"


def test_a_file_is_replaced_by_force_only(tmp_path):
    write_file_pieces(["1"], tmp_path / "a")
    with pytest.raises(OutputError, match="a exists already: choose another name, or remove it first"):
        write_file_pieces(["2"], tmp_path / "a")
    write_file_pieces(["3"], tmp_path / "a", force=True)
    assert (tmp_path / "a").read_text() == "3"


def test_equal_content_is_packed_into_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_file_pieces(["red"], tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"red"


def test_a_directory_appears_whole_and_replaces_none(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write_directory({"a": ["1"], "b/c": broken()}, tmp_path / "d")
    assert not os.listdir(tmp_path)
    write_directory({"a": ["1"], "b/c": ["2"]}, tmp_path / "d")
    assert (tmp_path / "d/b/c").read_text() == "2"
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == stat.S_IMODE((tmp_path / "d/b").stat().st_mode)
    with pytest.raises(OutputError, match="d exists already: choose another name, or remove it first"):
        write_directory({"a": ["1"]}, tmp_path / "d")


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    for write in (lambda path: write_file_pieces(["1"], path), lambda path: write_directory({"a": ["1"]}, path)):
        with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
            write(tmp_path / "absent" / "a")


def test_a_zip_of_equal_files_has_equal_bytes():
    created = []
    for _ in range(2):
        file = io.BytesIO()
        write_zip({"a": ["ü"], "b/c": [b"2"]}, file)
        created.append(file.getvalue())
    assert created[0] == created[1]
    with zipfile.ZipFile(io.BytesIO(created[0])) as archive:
        assert archive.read("a").decode() == "ü"


ROWS = np.arange(40, dtype=np.float32).reshape(10, 4)


class StoredArray:
    """An array in a file, and how often it was made."""

    def __init__(self, file, rows=ROWS):
        self.file, self.rows, self.made = file, rows, 0

    def get(self, *, dtype=np.float32, shape=(10, 4), holds="a"):
        def make():
            self.made += 1
            return [self.rows[:7], self.rows[7:]]

        return load_array(self.file, dtype, shape, holds=holds, make=make)


@pytest.fixture
def stored(tmp_path):
    return StoredArray(tmp_path / "folder" / "a.vectors")


def test_it_is_made_once_and_mapped_read_only(stored):
    for _ in range(2):
        result = stored.get()
        assert np.array_equal(result, ROWS)
        assert result.dtype == np.float32
        assert not result.flags.writeable
        assert isinstance(result.base, np.memmap)
    assert stored.made == 1
    assert os.listdir(stored.file.parent) == ["a.vectors"]


@pytest.mark.parametrize(
    "way", [pytest.param(way, id=name) for name, way in ways(row=16, header=slice(-256, None)).items()]
)
def test_damaged_file_is_rebuilt(stored, way, caplog):
    stored.get()
    spoil(stored.file, way)
    assert np.array_equal(stored.get(), ROWS)
    assert stored.made == 2
    assert f"{stored.file} is damaged or has other contents: it is written again." in caplog.text


def test_damage_preserving_size_and_times_is_detected(stored):
    stored.get()
    before = stored.file.stat()
    spoil(stored.file, lambda content: content[::-1])
    os.utime(stored.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert np.array_equal(stored.get(), ROWS)


def test_valid_file_of_other_content_is_rebuilt(stored, tmp_path):
    remaining = (
        StoredArray(tmp_path / "1", ROWS[::-1]).get(holds="b"),  # of another index: the same rows in another order
        StoredArray(tmp_path / "2", ROWS.astype(np.int8)).get(dtype=np.int8),
        StoredArray(tmp_path / "3", ROWS.reshape(20, 2)).get(shape=(20, 2)),
        StoredArray(tmp_path / "4").get(dtype=np.int32),  # of the same size
    )
    assert len(remaining) == 4
    for number in range(1, 5):
        stored.get()
        stored.file.write_bytes((tmp_path / str(number)).read_bytes())
        assert np.array_equal(stored.get(), ROWS)
        assert stored.made == 1 + number


def test_unknown_row_count_accepts_any_number(stored):
    for _ in range(2):
        assert stored.get(shape=(-1, 4)).shape == (10, 4)
    stored.file.write_bytes(stored.file.read_bytes()[16:])
    assert stored.get(shape=(-1, 4)).shape == (10, 4)
    assert stored.made == 2


def test_file_is_verified_once_until_it_changes(stored, monkeypatch):
    stored.get()
    reads = []
    checksum = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", lambda *args: reads.append(1) or checksum(*args))
    stored.get()
    assert not reads
    stored.file.write_bytes(stored.file.read_bytes())
    stored.get()
    assert len(reads) == 1


def test_file_is_synced_before_it_is_renamed(stored, monkeypatch):
    finished = []
    sync, replace = os.fsync, os.replace

    def noted(descriptor):
        finished.append("folder" if os.path.isdir(f"/dev/fd/{descriptor}") else f"{os.fstat(descriptor).st_size} bytes")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *paths: finished.append("name") or replace(*paths))
    stored.get()
    assert finished == [f"{ROWS.nbytes + SEAL_BYTES} bytes", "name", "folder"]


def test_leftover_temporary_files_are_deleted_after_an_hour(stored):
    stored.file.parent.mkdir()
    old, new = (stored.file.parent / f".a.vectors.{name}" for name in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"half")
    os.utime(old, (0, 0))
    stored.get()
    assert (old.exists(), new.exists()) == (False, True)


def test_wrong_row_count_is_an_error(stored):
    with pytest.raises(OutputError, match="was not written correctly"):
        stored.get(shape=(11, 4))


def test_a_full_disk_is_a_sentence_and_leaves_nothing(stored, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"a\.vectors cannot be written: No space left on device"):
        stored.get()
    assert os.listdir(stored.file.parent) == []


ARRAYS = {
    "rows": np.arange(12, dtype=np.float32).reshape(4, 3),
    "one": np.array(7, np.int64),
    "ünused": np.empty(0, np.int32),
}


def written_in_blocks(out):
    blocks = {"rows": [ARRAYS["rows"][:1], ARRAYS["rows"][1:]], "one": [ARRAYS["one"]], "ünused": []}
    write_npz(out, {name: ArrayBlocks(one.dtype.type, one.shape, blocks[name]) for name, one in ARRAYS.items()})


@pytest.mark.parametrize("write", [written_in_blocks, lambda out: np.savez(out, **ARRAYS)], ids=["ours", "NumPy's"])
def test_arrays_of_an_archive_are_views_of_its_bytes(write):
    out = io.BytesIO()
    write(out)
    data = np.frombuffer(out.getvalue() + b"and a seal", np.uint8)
    views = view_npz(data)
    with np.load(io.BytesIO(out.getvalue())) as loaded:
        assert views.keys() == set(loaded) == ARRAYS.keys()
        for name, view in views.items():
            assert np.array_equal(view, loaded[name])
            assert (view.dtype, view.shape) == (ARRAYS[name].dtype, ARRAYS[name].shape)
            assert np.shares_memory(view, data) or not view.size


def test_errors_do_not_name_the_scratch_folder():
    def fail() -> None:
        with scratch_folder() as folder:
            raise BenchbenchError(f"{folder}/zip/queries.jsonl, line 3: {folder} holds no corpus.")

    with pytest.raises(BenchbenchError) as caught:
        fail()
    assert caught.value.message == str(caught.value) == "zip/queries.jsonl, line 3: The upload holds no corpus."
    assert error_text(BenchbenchError("/srv/data/vectors/a/b.npy is damaged.")) == "…/b.npy is damaged."
