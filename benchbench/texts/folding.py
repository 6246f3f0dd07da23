"""Comparison of names that look alike."""

from benchbench.texts.words import normalize


def fold(name: str) -> str:
    """Return a name without differences in case, Unicode form, width and white space."""
    return " ".join(normalize(normalize(name, "NFKC").casefold(), "NFKC").split())
