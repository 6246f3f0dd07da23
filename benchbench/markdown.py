"""Text of users, escaped for Markdown; and Markdown of users, as HTML."""

import re
from functools import cache

from markdown_it import MarkdownIt


def text(words: str) -> str:
    """Return `words` on one line, with what Markdown or HTML would read as markup escaped; fit for a table's cell."""
    return re.sub(r"[\\`*<|~]|(?<!\w)[@_]|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", " ".join(words.split()))


def code(words: str) -> str:
    """Return `words` as a code span on one line."""
    return "`" + " ".join(words.replace("`", "'").split()) + "`"


def rendered(words: str) -> str:
    """Return Markdown as HTML that is safe to show: markup of its own is text, and it loads nothing from elsewhere."""
    return str(_renderer().render(words))


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
