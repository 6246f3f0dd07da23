"""Numbers in texts for people."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the right form: `1 query`, `2,345 queries`, `2 indexes`."""
    if number == 1:
        return f"1 {noun}"
    has_ies = noun.endswith("y") and noun[-2] not in "aeo"  # queries, but days
    many = f"{noun[:-1]}ies" if has_ies else f"{noun}es" if noun.endswith(("x", "s", "ch")) else f"{noun}s"
    return f"{number:,} {many}"


def signed(number: float, decimals: int = 4) -> str:
    """Return a difference with its sign, `+0.0123`. A number that rounds to zero gets no sign: `0.0000`."""
    text = f"{number:+z,.{decimals}f}"
    return text if float(text.replace(",", "")) else text[1:]


def figure(number: float, decimals: int = 4) -> str:
    """Return a measure's value for display: `.6451`, `1.0000`."""
    text = f"{number:z.{decimals}f}"
    return text[1:] if text.startswith("0.") else text


def short_signed(number: float, decimals: int = 4) -> str:
    """Return a difference for pages: `+.0123`, `−1.0000`, or `.0000` if it rounds to zero."""
    text = figure(abs(number), decimals)
    return text if not float(text) else f"{'+' if number > 0 else '−'}{text}"


def format_p(p: float) -> str:
    """Return the p of a test: `.031`; `< .001` below that."""
    return "< .001" if p < 0.001 else figure(p, 3)


def format_share(share: float) -> str:
    """Return a share of 1 as `3.1 %`."""
    return f"{100 * share:.1f} %"


def format_ms(number: float) -> str:
    """Return milliseconds with three significant digits: `0.82`, `14.3`, `1,250`."""
    decimals = 2 if number < 1 else 1 if number < 100 else 0
    return f"{number:,.{decimals}f}"


def list_some(names: Sequence[str], limit: int = 5, between: str = ", ") -> str:
    """Return the first of many names for a sentence: "q1, q2, q3, q4, q5 and 12 more"."""
    return between.join(names[:limit]) + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def join_words(words: Sequence[str]) -> str:
    """Return words as in a sentence: `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
