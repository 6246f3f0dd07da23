"""A benchmark as a document: verdict and leaderboard in Markdown, LaTeX and HTML, all of one `Story`."""

import re
from collections.abc import Iterator

from django.template.loader import render_to_string

from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from apps.results.charts import quality_and_cost
from apps.results.exporters.story import Line, Story, story_of
from benchbench.decimals import counted
from benchbench.markup import code, text

SCRIPT = "<!-- plotly -->"  # where the page has the 4 MB that draw the figure
ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "≥": r"$\geq$",
    "–": "--",
    "·": r"$\cdot$",
    "α": r"$\alpha$",
    "−": "$-$",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
}
ESCAPED |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


def write_markdown(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a comment on a pull request; equal results give equal texts."""
    story = story_of(benchmark, version)
    yield f"## {text(benchmark.name)}\n\n**{text(story.verdict)}**\n\n"
    collection = benchmark.mapping.collection.name
    yield f"Dataset {text(str(version))} on {code(collection)}, {counted(version.query_count, 'query')}.\n"
    if story.shared:
        yield f"All runs: {text(' · '.join(story.shared))}.\n"
    yield f"\n| rank | run | label | {' | '.join(map(text, story.measures))} | {story.time} | standing |\n"
    yield f"|---:|---:|---|{'---:|' * (len(story.measures) + 1)}---|\n"
    for line in story.lines:
        yield _markdown_row(line)
    if story.notes:
        yield "\n" + "\n".join(f"- {text(note)}" for note in story.notes) + "\n"


def _markdown_row(line: Line) -> str:
    row = line.row
    standing = f"**{text(line.failure)}**" if line.failure else line.standing
    if line.lost:
        standing += f"{', ' if standing else ''}**{text(line.lost)}**"
    cells = [str(row.rank or "–"), str(row.run.run_order), text(line.label), *line.numbers, standing]
    return f"| {' | '.join(cells)} |\n"


def latex(plain: str) -> str:
    """Return plain text on one line with what LaTeX would run written out."""
    pattern = "[" + re.escape("".join(ESCAPED)) + "]"
    return re.sub(pattern, lambda match: ESCAPED[match[0]], " ".join(plain.split()))


def write_latex(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write a `table` that needs no package, whose caption says what was tested.

    The best run is bold; a dagger marks significantly worse runs.
    """
    story = story_of(benchmark, version)
    yield "\\begin{table}\n\\centering\n"
    yield f"\\begin{{tabular}}{{l{'r' * len(story.measures)}r}}\n\\hline\n"
    yield " & ".join(["Run", *map(latex, story.measures), latex(story.time)]) + " \\\\\n\\hline\n"
    for line in story.lines:
        yield _latex_row(line, len(story.measures)) + " \\\\\n"
    yield f"\\hline\n\\end{{tabular}}\n\\caption{{{_caption(story)}}}\n\\end{{table}}\n"


def _latex_row(line: Line, measures: int) -> str:
    if line.failure:
        return f"{latex(line.label)} & \\multicolumn{{{measures + 1}}}{{l}}{{{latex(line.failure)}}}"
    values = [latex(number) for number in line.numbers]
    if line.standing == "best":
        values[0] = f"\\textbf{{{values[0]}}}"
    elif line.standing == "worse":
        values[0] += "$^\\dagger$"
    label = latex(line.label)
    if line.lost:
        label += f" ({latex(line.lost)})"
    return " & ".join([label, *values])


def _caption(story: Story) -> str:
    parts = [f"{story.benchmark.name} on {story.board.version}.", story.verdict, *story.notes]
    marks = "" if story.comparison is None else r" $^\dagger$: significantly worse than the best (bold)."
    return latex(" ".join(parts)) + marks


def write_html(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write one page that needs no network, in three pieces; the second draws the figure, where there is one."""
    story = story_of(benchmark, version)
    figure = quality_and_cost(story.board)
    page = render_to_string("results/export.html", {"story": story, "figure": figure, "script": SCRIPT})
    before, script, after = page.partition(SCRIPT)
    yield before
    if script:
        from plotly.offline import get_plotlyjs  # takes a second, and only this needs it

        yield f"<script>{get_plotlyjs()}</script>"
    yield after
