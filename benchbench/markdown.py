"""Text of users, escaped for Markdown."""

import re


def text(words: str) -> str:
    """Return `words` on one line, with what Markdown or HTML would read as markup escaped; fit for a table's cell."""
    return re.sub(r"[\\`*<|~]|(?<!\w)[@_]|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", " ".join(words.split()))


def code(words: str) -> str:
    """Return `words` as a code span on one line."""
    return "`" + " ".join(words.replace("`", "'").split()) + "`"
