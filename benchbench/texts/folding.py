"""Comparison of names that look alike."""

from unicodedata import normalize


def fold(name: str) -> str:
    """Return a name without differences in case, Unicode form, width and white space."""
    return " ".join(normalize("NFKC", normalize("NFKC", name).casefold()).split())
