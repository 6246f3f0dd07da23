"""Archives that someone uploads, unpacked or refused."""

import errno
import gzip
import os
import stat
import zipfile
from unittest.mock import Mock

import pytest

from benchbench.errors import BenchbenchError
from benchbench.files import archives
from benchbench.files.archives import require_unpacked_size, unpacked


def archive(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as created:
        for name, content in members:
            created.writestr(name, content)
    return path


def refusal(path, max_bytes=1000):
    with pytest.raises(BenchbenchError) as caught, unpacked(path, max_bytes=max_bytes):
        pass
    return caught.value.message


def test_it_gives_the_only_folder_or_all(tmp_path):
    with unpacked(
        archive(tmp_path / "a.zip", ("data/x.json", b"1"), ("__MACOSX/y", b""), (".z", b"")), max_bytes=9
    ) as at:
        assert (at.name, [file.name for file in at.iterdir()]) == ("data", ["x.json"])
    assert not at.exists()
    with unpacked(archive(tmp_path / "a.zip", ("x.json", b"1"), ("qrels/t.tsv", b"2")), max_bytes=9) as at:
        assert (at.name, (at / "qrels/t.tsv").read_bytes()) == ("a", b"2")


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a\\..\\x", "C:/x"])
def test_a_path_that_leads_out_is_refused(name, tmp_path):
    assert "which points outside the archive" in refusal(archive(tmp_path / "a.zip", (name, b"x")))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    "name", ["n" * 256, "ü" * 128, "d" * 256 + "/x", "/".join(["d" * 200] * 16), "x" * 60_000], ids=len
)
def test_too_long_name_error_hides_server_folders(name, tmp_path):
    message = refusal(archive(tmp_path / "a.zip", (name, b"x")))
    assert "is too long: names may have 255 bytes" in message
    assert "/tmp" not in message
    assert str(tmp_path) not in message
    assert len(message) < 600


def test_write_error_hides_server_folders(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.zip", ("x", b"1"))
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "secret"))
    monkeypatch.setattr(zipfile.ZipFile, "open", Mock(side_effect=error))
    assert refusal(path) == (
        "a.zip cannot be unpacked: one of its files cannot be written here: No space left on device."
    )


def test_links_repeated_files_and_too_many_are_refused(tmp_path, monkeypatch):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "holds the link 'link'" in refusal(archive(tmp_path / "a.zip", (link, b"/etc/passwd")))
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = archive(tmp_path / "a.zip", ("x", b"1"), ("x", b"2"))
    assert "holds the file 'x' twice" in refusal(twice)
    monkeypatch.setattr(archives, "MAX_FILES", 1)
    assert "holds 2 files, and at most 1 are allowed" in refusal(archive(tmp_path / "a.zip", ("x", b""), ("y", b"")))


def test_oversized_or_invalid_archives_are_refused(tmp_path):
    zeros = bytes(10**6)
    assert "unpacks to more bytes than are allowed" in refusal(archive(tmp_path / "a.zip", ("x", zeros)))
    assert "unpacks to more than" in refusal(archive(tmp_path / "a.zip", ("x.gz", gzip.compress(zeros))), 5000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(zeros))
    assert require_unpacked_size(tmp_path / "x.gz", max_bytes=10**6) == 10**6
    with pytest.raises(BenchbenchError, match="unpacks to more than the allowed 10 bytes"):
        require_unpacked_size(tmp_path / "x.gz", max_bytes=10)
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 no")
    assert (
        refusal(tmp_path / "a.zip")
        == "a.zip cannot be unpacked: it is incomplete or not a zip file. Pack it, or copy it, again."
    )
