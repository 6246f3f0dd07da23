"""Text without control characters, for a terminal."""

KEPT = "\n\t"


def printable(text: str) -> str:
    """Return `text` with a space for each character that does not print; ends of lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else " " for c in text)


def on_one_line(text: str) -> str:
    """Return `text` without what does not print, on one line and single-spaced."""
    return " ".join(printable(text).split())
