"""Files that appear when they are whole, or not at all."""

import gzip
import io
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchbench.local_files.placing import OutputError, place_directory, place_pieces, write_zip


def broken() -> Iterator[str]:
    yield "half"
    raise ZeroDivisionError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        place_pieces(broken(), tmp_path / "a")
    assert not os.listdir(tmp_path)
    place_pieces(["ü", b"\xff"], tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == "ü".encode() + b"\xff"
    with pytest.raises(ZeroDivisionError):
        place_pieces(broken(), tmp_path / "a", force=True)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == "ü".encode() + b"\xff"


def test_a_file_is_replaced_by_force_only(tmp_path: Path) -> None:
    place_pieces(["1"], tmp_path / "a")
    with pytest.raises(OutputError, match="a exists already: choose another --output, or give --force to replace it"):
        place_pieces(["2"], tmp_path / "a")
    place_pieces(["3"], tmp_path / "a", force=True)
    assert (tmp_path / "a").read_text() == "3"


def test_equal_content_is_packed_into_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        place_pieces(["red"], tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"red"


def test_a_directory_appears_whole_and_replaces_none(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        place_directory({"a": ["1"], "b/c": broken()}, tmp_path / "d")
    assert not os.listdir(tmp_path)
    place_directory({"a": ["1"], "b/c": ["2"]}, tmp_path / "d")
    assert (tmp_path / "d/b/c").read_text() == "2"
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == stat.S_IMODE((tmp_path / "d/b").stat().st_mode)
    with pytest.raises(OutputError, match="d exists already: choose another --output, or remove it first"):
        place_directory({"a": ["1"]}, tmp_path / "d")


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    for write in (lambda path: place_pieces(["1"], path), lambda path: place_directory({"a": ["1"]}, path)):
        with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
            write(tmp_path / "absent" / "a")


def test_a_zip_of_equal_files_has_equal_bytes() -> None:
    made = []
    for _ in range(2):
        file = io.BytesIO()
        write_zip({"a": ["ü"], "b/c": [b"2"]}, file)
        made.append(file.getvalue())
    assert made[0] == made[1]
    with zipfile.ZipFile(io.BytesIO(made[0])) as archive:
        assert archive.read("a").decode() == "ü"
