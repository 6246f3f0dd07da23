"""Safe unpacking of uploaded archives."""

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from benchbench.errors import FileFormatError
from benchbench.local_files.placing import scratch_folder
from benchbench.reading.strict_json import read_chunks

MAX_FILES = 10_000
BLOCK = 2**20
NAME_BYTES = 255
PATH_BYTES = 3000  # of a path within its folder; with the folder, a path has at most 4,096 bytes


@contextmanager
def unpacked(path: Path, *, max_bytes: int) -> Iterator[Path]:
    """Unpack a zip while the block runs, and yield its directory: its only folder, else all of it.

    Hidden files and those that macOS adds are left out. Raises an error for an absolute path, one with `..`, a link, a
    name or path that is too long, a password, a repeated file, more than MAX_FILES files, and more than `max_bytes`
    unpacked, with any `.gz` unpacked too. The bytes written are counted, not the sizes that the archive declares.
    """
    with scratch_folder() as folder:
        target = _unpack(path, folder / (path.stem or "archive"), max_bytes)
        inside = list(target.iterdir())
        yield inside[0] if len(inside) == 1 and inside[0].is_dir() else target


@contextmanager
def gathered(paths: Sequence[Path], *, max_bytes: int) -> Iterator[Path]:
    """Yield a directory with links to some files while the block runs, zips unpacked; a single file as it is.

    The directory has the name of the files, not that of the only folder in a zip.

    Raises the errors of `unpacked`, and one for two files of a name.
    """
    if len(paths) == 1 and paths[0].suffix.lower() != ".zip":
        yield paths[0]
        return
    with scratch_folder() as folder:
        target = folder / "outer" / name_files(paths)
        target.mkdir(parents=True)
        for path in paths:
            if (target / path.name).exists():
                raise FileFormatError(f"Two files are called {path.name}: rename one.")
            if path.suffix.lower() == ".zip":
                _unpack(path, target if len(paths) == 1 else target / path.name, max_bytes)
            else:
                (target / path.name).symlink_to(path.resolve())
        inner = find_inner(target)
        if inner != target:
            (folder / "inner").mkdir()
            inner = inner.rename(folder / "inner" / target.name)
        yield inner


def name_files(paths: Sequence[Path]) -> str:
    """Return a name for some files: "queries and qrels"."""
    if len(paths) == 1:
        return paths[0].stem or "archive"
    return " and ".join(path.name.split(".")[0] for path in paths)[:100] or "files"


def find_inner(directory: Path) -> Path:
    """Return the only folder in a directory, however deep, else the directory."""
    while len(inside := list(directory.iterdir())) == 1 and inside[0].is_dir():
        directory = inside[0]
    return directory


def _unpack(path: Path, target: Path, max_bytes: int) -> Path:
    target.mkdir(exist_ok=True)
    try:
        with zipfile.ZipFile(path) as archive:
            _extract(archive, target, max_bytes)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise FileFormatError(f"{path.name} cannot be unpacked: {_describe_error(path, error)}.") from None
    return target


def require_unpacked_size(path: Path, *, max_bytes: int) -> int:
    """Return how many bytes a `.gz` unpacks to; 0 for another file. Raises an error above `max_bytes`."""
    size = 0
    if path.suffix == ".gz":
        for chunk in read_chunks(path):
            size += len(chunk)
            if size > max_bytes:
                raise FileFormatError(f"{path.name} unpacks to more than the allowed {max_bytes:,} bytes.")
    return size


def _describe_error(path: Path, error: Exception) -> str:
    if isinstance(error, zipfile.BadZipFile) and not zipfile.is_zipfile(path):
        return "it is incomplete or not a zip file. Pack it, or copy it, again"
    if isinstance(error, zipfile.BadZipFile | zlib.error | EOFError):
        return "it is damaged. Pack it, or copy it, again"
    if isinstance(error, OSError):  # whose text has the folder
        return f"one of its files cannot be written here: {error.strerror or type(error).__name__}"
    return str(error)


def _extract(archive: zipfile.ZipFile, target: Path, max_bytes: int) -> None:
    left = max_bytes
    members = [member for member in archive.infolist() if not _is_left_out(member.filename)]
    if len(members) > MAX_FILES:
        raise ValueError(f"it holds {len(members):,} files, and at most {MAX_FILES:,} are allowed")
    for member in members:
        file = target / _check_member(member)
        if file.exists():
            raise ValueError(f"it holds the file {member.filename[:60]!a} twice")
        file.parent.mkdir(parents=True, exist_ok=True)
        left -= _write(archive, member, file, left)
        left -= require_unpacked_size(file, max_bytes=left)


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path, max_bytes: int) -> int:
    written = 0
    with archive.open(member) as packed, file.open("wb") as out:
        while block := packed.read(BLOCK):
            written += len(block)
            if written > max_bytes:
                raise ValueError("it unpacks to more bytes than are allowed")
            out.write(block)
    return written


def _check_member(member: zipfile.ZipInfo) -> PurePosixPath:
    """Return the path of a member. Raises ValueError for a path that leaves the folder."""
    name = PurePosixPath(member.filename)
    if not name.name or name.is_absolute() or ".." in name.parts or "\\" in member.filename or ":" in member.filename:
        raise ValueError(f"it holds the path {member.filename[:60]!a}, which points outside the archive")
    if any(len(os.fsencode(component)) > NAME_BYTES for component in name.parts) or len(os.fsencode(name)) > PATH_BYTES:
        raise ValueError(
            f"it holds a path that begins {member.filename[:60]!a} and is too long: names may have "
            f"{NAME_BYTES} bytes, paths {PATH_BYTES:,}"
        )
    if stat.S_ISLNK(member.external_attr >> 16):
        raise ValueError(f"it holds the link {member.filename[:60]!a}")
    if member.flag_bits & 1:
        raise ValueError("it has a password: pack it again without one")
    return name


def _is_left_out(name: str) -> bool:
    """Return whether a name belongs to a folder, a hidden file or a file of macOS."""
    return name.endswith("/") or any(
        component == "__MACOSX" or (component.startswith(".") and component != "..")
        for component in PurePosixPath(name).parts
    )


# How files begin that no reader reads, and what to do with them.
BINARY = (
    (b"%PDF-", "is a PDF, which is not read: save its text as .txt, .md or .html, or a table as CSV"),
    (b"\xd0\xcf\x11\xe0", "is a file of old Office: save a workbook as .xlsx, a document as text"),
    (b"PAR1", "is a Parquet file: save it as CSV or JSON Lines"),
    (b"SQLite format 3", "is a database: save its table as CSV"),
    (b"7z\xbc\xaf", "is a 7z archive: pack it as .zip"),
    (b"Rar!", "is a RAR archive: pack it as .zip"),
    (b"{\\rtf", "is a document of a word processor: save it as text, or a table as CSV"),
)
UNREAD = (".pdf", ".docx", ".doc", ".odt", ".rtf", ".pptx", ".ppt", ".xlsx", ".xls", ".epub", ".msg", ".eml", ".tex")
OFFICE = (
    ("xl/", "is a workbook: save it as .xlsx"),
    ("word/", "is a Word document, which is not read: save it as .txt, .md or .html, or a table as CSV"),
    ("content.xml", "is a file of LibreOffice: save a workbook as .xlsx, a text as .txt"),
)


def describe_binary(path: Path) -> str:
    """Return what a file is that no reader reads, and the remedy, by its first bytes; "" for any other file."""
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"\x1f\x8b") and path.suffix != ".gz":
        return "is packed with gzip: end its name in .gz"
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        office = (sentence for start, sentence in OFFICE if any(name.startswith(start) for name in names))
        return next(office, "" if path.suffix.lower() == ".zip" else "is a zip: end its name in .zip")
    return next((sentence for start, sentence in BINARY if head.startswith(start)), "")


def list_unread(file: IO[bytes]) -> list[str]:
    """Return the documents of programs in a zip, which no reader reads there; none for a single file."""
    if not zipfile.is_zipfile(file):
        return []
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if not _is_left_out(name)]
    return sorted(name for name in names if len(names) > 1 and PurePosixPath(name).suffix.lower() in UNREAD)
