"""LaTeX: the leaderboard as a table for a paper, with marks for what the verdict found. It needs no package."""

import re
from collections.abc import Iterator

from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from apps.results.exporters.story import BEST, WORSE, Line, Story, story_of

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


def latex(text: str) -> str:
    """Return text on one line with what LaTeX would run written out."""
    pattern = "[" + re.escape("".join(ESCAPED)) + "]"
    return re.sub(pattern, lambda match: ESCAPED[match[0]], " ".join(text.split()))


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """A `table` whose caption says what was tested. The best is bold; a dagger marks significantly worse runs."""
    story = story_of(benchmark, version)
    yield "\\begin{table}\n\\centering\n"
    yield f"\\begin{{tabular}}{{l{'r' * len(story.measures)}r}}\n\\hline\n"
    yield " & ".join(["Run", *map(latex, story.measures), latex(story.time)]) + " \\\\\n\\hline\n"
    for line in story.lines:
        yield _row(line, len(story.measures)) + " \\\\\n"
    yield f"\\hline\n\\end{{tabular}}\n\\caption{{{_caption(story)}}}\n\\end{{table}}\n"


def _row(line: Line, measures: int) -> str:
    if line.failure:
        return f"{latex(line.label)} & \\multicolumn{{{measures + 1}}}{{l}}{{{latex(line.failure)}}}"
    values = ["--" if value is None else f"{value:.4f}" for value in line.cells]
    if line.standing == BEST:
        values[0] = f"\\textbf{{{values[0]}}}"
    elif line.standing == WORSE:
        values[0] += "$^\\dagger$"
    ms = line.row.run.timing.get("total_ms")
    label = latex(line.label)
    if line.lost:
        label += f" ({latex(line.lost)})"
    return " & ".join([label, *values, "--" if ms is None else f"{ms:.1f}"])


def _caption(story: Story) -> str:
    parts = [f"{story.benchmark.name} on {story.board.version}.", story.verdict, *story.notes]
    marks = "" if story.comparison is None else r" $^\dagger$: significantly worse than the best (bold)."
    return latex(" ".join(parts)) + marks
