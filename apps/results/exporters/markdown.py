"""Markdown: the verdict and the leaderboard, as a comment on a pull request. Equal results give equal texts."""

from collections.abc import Iterator

from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from apps.results.exporters.story import Line, story_of
from benchbench.decimals import counted
from benchbench.markdown import code, text


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    story = story_of(benchmark, version)
    yield f"## {text(benchmark.name)}\n\n**{text(story.verdict)}**\n\n"
    collection = benchmark.mapping.collection.name
    yield f"Dataset {text(str(version))} on {code(collection)}, {counted(version.query_count, 'query')}.\n"
    if story.shared:
        yield f"All runs: {text(' · '.join(story.shared))}.\n"
    yield f"\n| rank | run | label | {' | '.join(map(text, story.measures))} | {story.time} | standing |\n"
    yield f"|---:|---:|---|{'---:|' * (len(story.measures) + 1)}---|\n"
    for line in story.lines:
        yield _row(line)
    if story.notes:
        yield "\n" + "\n".join(f"- {text(note)}" for note in story.notes) + "\n"


def _row(line: Line) -> str:
    row = line.row
    ms = row.run.timing.get("total_ms")
    told = f"**{text(line.failure)}**" if line.failure else line.standing
    if line.lost:
        told += f"{', ' if told else ''}**{text(line.lost)}**"
    cells = [
        str(row.rank or "–"),
        str(row.run.run_order),
        text(line.label),
        *("–" if value is None else f"{value:.4f}" for value in line.cells),
        "–" if ms is None else f"{ms:.1f}",
        told,
    ]
    return f"| {' | '.join(cells)} |\n"
