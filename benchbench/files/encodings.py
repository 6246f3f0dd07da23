"""Texts in an encoding other than UTF-8, or with lines of old Macs, and workbooks, read through a copy."""

import codecs
import gzip
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchbench.errors import FileFormatError
from benchbench.files.workbooks import copy_sheet, is_workbook
from benchbench.local_files.placing import scratch_folder
from benchbench.texts.storable import HEAD, find_wide_encoding

BLOCK = 2**18
OLD, SHEET = "cp1252", "sheet"
NAMES = {OLD: "Windows-1252"}
HIGH = re.compile(rb"[\x80-\xff]+")
LONG = 3  # letters outside ASCII in a row; in texts of Windows-1252 they are rare
MOST_LONG = 0.1  # of the letters outside ASCII
# Letters of other old encodings would read so: of DOS (K„se), of old Macs (KŠse), of Asian ones (¨¨).
FOREIGN = re.compile("[A-Za-zÀ-ÿ][‚„”†‡ˆ‰ŠŽŸ§‹›¢£¥¶©®±¹²³¼½¾][a-zÀ-ÿ¿]|[a-zß-ÿ][À-ÖØ-ÞŒ][a-zß-ÿ]|[¤¦¨¬¯¸]")
BEFORE, AFTER = 20, 40  # characters around the first letter outside ASCII that a note shows, in full words
EXCERPT = re.compile(rf"(?<!\w)[^\n]{{0,{BEFORE}}}?[^\0-\x7f][^\n]{{0,{AFTER}}}(?!\w)")


@contextmanager
def in_utf8(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield a file or directory, or its copy with texts in UTF-8, and a sentence for each text that was not.

    A workbook is copied as the CSV of its first sheet. JSON must be UTF-8, so a file that begins as JSON stays as it
    is, as do those of unclear encoding: their reader refuses them. Lines keep their numbers.
    """
    files = [path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("*")))
    encodings = {file: encoding for file in files if (encoding := _find_way(file))}
    if not encodings:
        yield path, []
        return
    with scratch_folder() as folder:
        copy = folder / path.resolve().name
        if path.is_dir():
            shutil.copytree(path.resolve(), copy, copy_function=os.symlink)
        notes = []
        for file, encoding in encodings.items():
            target = copy / file.relative_to(path)
            target.unlink(missing_ok=True)
            note = copy_sheet(file, target) if encoding == SHEET else _copy(file, target, encoding)
            notes += [note] if note and encoding != "utf-8" else []
        yield copy, notes


def _find_way(file: Path) -> str:
    """Return SHEET for a workbook, the codec of a text that must be copied, else ""."""
    return SHEET if is_workbook(file) else find_encoding(file) or ends_lines_with_cr(file)


def find_encoding(path: Path) -> str:
    """Return the codec of a text that is not UTF-8, by all its bytes; "" for UTF-8, JSON and other files."""
    try:
        with _open(path, "rb") as file:
            head = file.read(HEAD)
            if wide := _find_wide_codec(head):
                return wide
            if head.lstrip()[:1] in (b"", b"{", b"[") or b"\0" in head:
                return ""
            file.seek(0)
            return _find_narrow_codec(file)
    except (OSError, EOFError, zlib.error):
        return ""  # its reader says what is wrong


def ends_lines_with_cr(path: Path) -> str:
    """Return "utf-8" for a text in it whose lines end as on old Macs, else ""."""
    try:
        with _open(path, "rb") as file:
            block = file.read(BLOCK)
            file.seek(0)
            return "utf-8" if _has_only_cr(block.strip()) and b"\0" not in block and _decodes(file, "utf-8") else ""
    except (OSError, EOFError, zlib.error):
        return ""


def _has_only_cr(block: str) -> bool:
    cr, lf = ("\r", "\n") if isinstance(block, str) else (b"\r", b"\n")
    return cr in block and lf not in block


def _open(path: Path, mode: str) -> IO[Any]:
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)  # type: ignore[return-value]


def _find_wide_codec(head: bytes) -> str:
    name = find_wide_encoding(head)
    if not name:
        return ""
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    codec = name.lower() if marked else f"utf-16-{'le' if head[1::2].count(0) > head[::2].count(0) else 'be'}"
    return "" if head.decode(codec, "ignore").lstrip()[:1] in ("", "{", "[") else codec


def _find_narrow_codec(file: IO[bytes]) -> str:
    """Return Windows-1252 if the bytes are not UTF-8 and look like words in it, else ""."""
    high = long = 0
    before = ""
    if _decodes(file, "utf-8"):
        return ""
    file.seek(0)
    while block := file.read(BLOCK):
        runs = [len(run) for run in HIGH.findall(block)]
        high, long = high + sum(runs), long + sum(run for run in runs if run >= LONG)
        try:
            text = before + block.decode(OLD)
        except UnicodeDecodeError:
            return ""
        if FOREIGN.search(text) or "\0" in text:
            return ""
        before = text[-2:]
    return OLD if long <= MOST_LONG * high else ""


def _decodes(file: IO[bytes], encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        while block := file.read(BLOCK):
            decoder.decode(block)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _copy(source: Path, target: Path, encoding: str) -> str:
    """Write a text as UTF-8, and return the sentence about it with its first words outside ASCII."""
    decoder, sample, line = codecs.getincrementaldecoder(encoding)(), "", 1
    is_old_mac: bool | None = None
    with _open(source, "rb") as file, _open(target, "wb") as out:
        is_last = False
        while not is_last:
            block = file.read(BLOCK)
            is_last = not block
            try:
                text = decoder.decode(block, is_last).removeprefix("\ufeff")
                is_old_mac = _has_only_cr(text.strip()) if is_old_mac is None else is_old_mac
                text = text.replace("\r", "\n") if is_old_mac else text
                out.write(text.encode())
            except UnicodeError:
                raise FileFormatError(
                    f"{source.name} is not valid {encoding.upper()}: save it as UTF-8 (spreadsheets call it CSV UTF-8)."
                ) from None
            if not sample and (first := re.search(r"[^\0-\x7f]", text)):
                at = first.start()
                words = EXCERPT.search(text, max(0, at - BEFORE))
                sample = (words[0] if words and words.start() <= at else text[at : at + AFTER].split("\n")[0]).strip()
                line += text.count("\n", 0, first.start())
            elif not sample:
                line += text.count("\n")
    excerpt = f", line {line} as “{sample}”. If that is wrong, save the file as UTF-8 (spreadsheets call it CSV UTF-8)"
    name = NAMES.get(encoding, encoding.upper())
    return f"{source.name} is not UTF-8; it was read as {name}{excerpt if sample else ''}."
