"""The readable text of an HTML page."""

import re
from html.parser import HTMLParser

from apps.collections.headings import Heading

MARK = "\ud800"  # where a heading begins: half a character, which no decoded text has
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
UNSEEN = ("script", "style", "template", "noscript")
INLINE = re.compile(
    "a|abbr|b|bdi|bdo|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strong|sub|sup|time|tt|u|"
    "var|wbr"
)


def read_html(source: str) -> tuple[str, str, list[Heading]]:
    """Return (title, text, headings) of an HTML page.

    The title is that of `<title>`, else the first `<h1>`, else "". The text is what a reader sees: a line per block
    element, white space collapsed except in `<pre>`, scripts and styles left out. Headings without words are none.
    """
    page = _Page()
    page.feed(source)
    page.close()
    lines = (line.rstrip() for line in "".join(page.parts).split("\n"))
    marked = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    before, *parts = marked.split(MARK)
    headings, start = [], len(before)
    for (level, id, title), part in zip(page.headings, parts, strict=True):
        headings.append(Heading(_collapse(title), level, start, id))
        start += len(part)
    return _collapse(page.title) or _collapse(page.heading), marked.replace(MARK, ""), headings


def _collapse(text: str) -> str:
    return " ".join(text.split())


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = self.heading = ""
        self.inside: dict[str, int] = dict.fromkeys({*UNSEEN, "title", "h1", "pre"}, 0)
        self.titled = self.headed = False
        self.headings: list[tuple[int, str, str]] = []  # level, id, words of those that have any
        self.within: tuple[int, str] | None = None  # level and id of the heading that is open
        self.is_marked = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.inside:
            self.inside[tag] += 1
        self._break(tag)
        if tag in HEADINGS:
            self.within, self.is_marked = (int(tag[1]), dict(attrs).get("id") or ""), False

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside.get(tag):
            self.inside[tag] -= 1
        self.titled |= tag == "title"
        self.headed |= tag == "h1"
        if tag in HEADINGS:
            self.within = None
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if any(self.inside[tag] for tag in UNSEEN):
            return
        if self.inside["title"]:
            self.title += "" if self.titled else data
            return
        if self.inside["h1"] and not self.headed:
            self.heading += data
        seen = data if self.inside["pre"] else self._flowing(data)
        self.parts.append(self._marked(seen) if self.within and data.strip() else seen)

    def _marked(self, words: str) -> str:
        """Note words of the heading that is open; before the first of them goes a mark of their place in the text."""
        assert self.within is not None
        if self.is_marked:
            level, id, before = self.headings.pop()
            self.headings.append((level, id, before + words))
            return words
        self.headings.append((*self.within, words))
        self.is_marked = True
        return words[: -len(words.lstrip())] + MARK + words.lstrip()

    def _flowing(self, data: str) -> str:
        text = re.sub(r"\s+", " ", data)
        ended = not self.parts or self.parts[-1].endswith(("\n", " "))
        return text.lstrip() if ended else text

    def _break(self, tag: str) -> None:
        if not INLINE.fullmatch(tag) and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")
