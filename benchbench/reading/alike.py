"""Names that look alike and are different: ids are kept as they were written, so that a slip makes two of one."""

import unicodedata
from collections.abc import Collection

# Cyrillic and Greek letters, each with the Latin one that it looks like.
LATIN = str.maketrans("АВЕЅІЈКМНОРСТХУаеѕіјорсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABESIJKMHOPCTXYaesijopcyxABEZHIKMNOPTYXo")


def alike(names: Collection[str]) -> list[tuple[str, str]]:
    """Return pairs of different names that look the same, each name once at most as the second of a pair.

    The same letters in another Unicode form or width, a character that is not seen, or a letter of another script make
    such a pair; case does not. `names` is asked what is in it: a set or a dictionary is fast, where few names are not
    ASCII.
    """
    first: dict[str, str] = {}
    pairs = []
    for name in names:
        if name.isascii():
            continue
        shape = _shape(name)
        other = first.setdefault(shape, shape if shape in names else name)
        if other != name:
            pairs.append((other, name))
    return pairs


def alike_sentence(names: Collection[str], *, what: str) -> str:
    """Say which of `names` look alike, two pairs of them as ASCII has them; "" where none do."""
    pairs = alike(names)
    if not pairs:
        return ""
    shown = "; ".join(f"{one[:100]!a} and {other[:100]!a}" for one, other in pairs[:2])
    more = f" and {len(pairs) - 2:,} more" if len(pairs) > 2 else ""
    return f"{what} that look alike, and are different: {shown}{more}."


def _shape(name: str) -> str:
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", seen).translate(LATIN)
