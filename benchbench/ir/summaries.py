"""Summaries where nobody wrote one: the first sentences of a text."""

import re

CHARACTERS = 500  # as many as a chunk has by default

ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*\n")


def first_sentences(text: str, *, most: int = CHARACTERS) -> str:
    """The sentences that a text begins with, as many as fit into `most` characters, white space collapsed.

    A sentence ends with a full stop, a question or exclamation mark before white space, or with a blank line. Where not
    even the first one fits it is cut after a word.
    """
    summary = ""
    start = 0
    for end in [*(match.end() for match in ENDS.finditer(text)), len(text)]:
        longer = " ".join([summary, *text[start:end].split()]).strip()
        if len(longer) > most:
            return summary or longer[: most + 1].rsplit(maxsplit=1)[0][:most]
        summary, start = longer, end
    return summary
