"""HTML: one page in one file that needs no network: verdict, leaderboard, and a figure with the code to draw it."""

from collections.abc import Iterator

from django.template.loader import render_to_string

from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from apps.results.charts import quality_and_cost
from apps.results.exporters.story import story_of

SCRIPT = "<!-- plotly -->"  # where the page has the 4 MB that draw the figure


def write(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """The page in three pieces, of which the library is the second. A page without a figure goes without it."""
    story = story_of(benchmark, version)
    figure = quality_and_cost(story.board)
    page = render_to_string("results/export.html", {"story": story, "figure": figure, "script": SCRIPT})
    before, script, after = page.partition(SCRIPT)
    yield before
    if script:
        from plotly.offline import get_plotlyjs  # takes a second, and only this needs it

        yield f"<script>{get_plotlyjs()}</script>"
    yield after
