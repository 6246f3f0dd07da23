"""The audit as text for a terminal, or as Markdown."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from benchbench import markup
from benchbench.busy import clean_text
from benchbench.decimals import counted, figure, format_p, short_signed
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.limits import Support
from benchbench.scoring.auditing import Audit, PairFigures

TESTED = ("95 % interval", "p", "least p", "detectable", "more queries", "wins, ties, losses")
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A table, its first row with the names of the columns, and sentences below it; either may be empty."""

    title: str
    rows: Rows = ()
    lines: Sequence[str] = ()


def describe_audit(audit: Audit) -> list[Section]:
    """Return the sections of a report, the verdict first."""
    names, judged = list(audit.runs[0].means), str(Measure("Judged", Measure.read(audit.measure).cutoff))
    runs = [("run", *names, judged, "condensed", "at least", "at most")] + [
        (one.run, *_show(*one.means.values(), one.judged, one.condensed, one.lower_bound, one.upper_bound))
        for one in audit.runs
    ]
    limits = [
        f"{judged}: the share of documents read that is judged; condensed: the value without the others; at least, "
        "at most: what judging all could make of it.",
        "Least p: if all queries that differ agreed. Detectable: the true difference found with 80 % power. More "
        "queries: about as many as would decide the observed one, if any realistic number would. "
        "All pairs are in --format json.",
    ]
    tested = [("difference", audit.measure, *TESTED), *map(_list_cells, audit.pairs[: len(audit.runs) - 1])]
    faults = [fault.sentence for fault in audit.faults] or ["Nothing was noticed."]
    return [
        Section(audit.verdict, lines=audit.notes),
        Section(f"{counted(audit.queries, 'judged query')}, {counted(audit.judgments, 'judgment')}", runs),
        Section("What the figures support", tested, limits),
        Section("What is wrong with the files, or may be", lines=faults),
    ]


def describe_support(support: Support) -> list[Section]:
    """Return the sections of a report on two means without their values."""
    gap, queries = figure(abs(support.difference)), counted(support.queries, "query")
    best = (
        f"At best, if every query differed alike, p would be {format_p(support.attainable_p)}. The difference is "
        f"significant at 5 % if those of the queries have a standard deviation of at most "
        f"{figure(support.significant_spread)}"
    )
    possible = (
        f"; these means allow one of up to {figure(support.greatest_spread)}." if support.greatest_spread else "."
    )
    rows = [("standard deviation", f"found by {queries}, 80 % power", f"queries that find {gap}")] + [
        (figure(spread, 1), figure(detectable), f"{support.queries_needed[spread] or 'none'}")
        for spread, detectable in support.detectable.items()
    ]
    need = (
        "Whether a difference exceeds chance depends on how it varies between queries, and means do not show that: "
        "give the run files and the judgments, `benchbench audit a.run b.run --qrels judgments.txt`."
    )
    title = f"Two means that differ by {gap} over {queries} support no verdict."
    return [Section(title, lines=[need, best + possible]), Section("What they could support", rows)]


def render_text(sections: Sequence[Section]) -> str:
    """Return a report for a terminal."""
    blocks = []
    for section in sections:
        widths = [max(map(len, column)) for column in zip(*section.rows, strict=True)]
        rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in section.rows]
        lines = [textwrap.fill(line, 110, subsequent_indent="  ") for line in section.lines]
        blocks.append("\n".join([section.title, *(textwrap.indent(line, "  ") for line in (*rows, *lines))]))
    return clean_text("\n\n".join(blocks))


def render_markdown(sections: Sequence[Section]) -> str:
    """Return a report for a pull request."""
    blocks = []
    for section in sections:
        rows = [f"| {' | '.join(map(markup.text, row))} |" for row in section.rows]
        rows[1:1] = ["|---" * len(section.rows[0]) + "|"] if section.rows else []
        lines = [f"- {markup.text(line)}" for line in section.lines]
        blocks.append(
            "\n\n".join(filter(None, [f"## {markup.text(section.title)}", "\n".join(rows), "\n".join(lines)]))
        )
    return clean_text("\n\n".join(blocks))


def _list_cells(pair: PairFigures) -> tuple[str, ...]:
    tested = pair.statistics
    return (
        f"{pair.first} − {pair.second}",
        short_signed(tested.difference),
        "none"
        if tested.simultaneous is None
        else f"{short_signed(tested.simultaneous.low)} to {short_signed(tested.simultaneous.high)}",
        f"{format_p(tested.p_adjusted)}{', significant' if tested.significant else ''}",
        format_p(pair.attainable_p),
        *_show(tested.detectable),
        "" if tested.significant else f"{pair.more_queries or 'none'}",
        f"{tested.wins}, {tested.ties}, {tested.losses}",
    )


def _show(*numbers: float | None) -> list[str]:
    return ["none" if number is None else figure(number) for number in numbers]
