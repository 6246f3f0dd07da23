"""Files of bytes, spoilt in the ways that disks, power cuts and people spoil them."""

import random
from collections.abc import Callable
from pathlib import Path

Spoil = Callable[[bytes], bytes]


def _flipped(content: bytes, start: int, end: int, bits: int) -> bytes:
    spoilt = bytearray(content)
    for place in random.Random(1).sample(range(start * 8, end * 8), bits):
        spoilt[place // 8] ^= 1 << place % 8
    return bytes(spoilt)


def _reversed(content: bytes, row: int) -> bytes:
    count = len(content) // 2 // row
    rows = [content[number * row : (number + 1) * row] for number in range(count)]
    return b"".join(reversed(rows)) + content[count * row :]


def ways(*, row: int, header: slice) -> dict[str, Spoil]:
    """Return ways to spoil a file whose rows take `row` bytes and whose `header` may be anywhere in it."""

    def flip_header(content: bytes) -> bytes:
        start, end, _ = header.indices(len(content))
        return _flipped(content, start, end, 1)

    return {
        "second half zeroed": lambda content: content[: len(content) // 2].ljust(len(content), b"\0"),
        "rows in another order": lambda content: _reversed(content, row),
        "cut to half": lambda content: content[: len(content) // 2],
        "a byte short": lambda content: content[:-1],
        "a byte longer": lambda content: content + b"\0",
        "emptied": lambda content: b"",
        "all zeros": lambda content: bytes(len(content)),
        "a bit flipped": lambda content: _flipped(content, 0, len(content) // 2, 1),
        "bits flipped": lambda content: _flipped(content, 0, len(content), 20),
        "a bit of the header flipped": flip_header,
        "something else": lambda content: b"nonsense",
    }


def spoil(file: Path, way: Spoil) -> None:
    spoilt = way(file.read_bytes())
    assert spoilt != file.read_bytes()
    file.write_bytes(spoilt)
