"""Text of users, escaped for Markdown."""

import re


def text(stated: str) -> str:
    """Return `stated` on one line, with what Markdown or HTML would read as markup escaped; fit for a table's cell."""
    return re.sub(r"[\\`*<|~]|(?<!\w)[@_]|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", " ".join(stated.split()))


def code(stated: str) -> str:
    """Return `stated` as a code span on one line."""
    return "`" + " ".join(stated.replace("`", "'").split()) + "`"
