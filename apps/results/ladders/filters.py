"""The ladder of search under filters: agreement, loss and time of each setting along the shares that filters admit."""

from collections.abc import Sequence

from apps.execution.running.timing import name_search_ms
from apps.records.measuring.selection import find_selection
from apps.records.models import Benchmark
from apps.results.charts import Figure, compute_height, figure, time_axis, wrap_text
from apps.results.ladders import page
from apps.results.ladders.filter_shares import Setting, ShareRung, has_shares, list_settings
from apps.results.templatetags.benchbench import milliseconds, value
from benchbench.decimals import counted
from benchbench.ir.planning.labels import render_share

INTRODUCTION = (
    "A filter admits a fixed pseudo-random share of the documents, the same for every setting and query. Results of "
    "pgvector and of stores count as found: none is searched again exactly when too few are found. nDCG and its "
    "difference to exact search under the same filter are over the queries with a relevant document that the filter "
    "admits: without one, every search has 0. The ideal of nDCG still counts the excluded documents, so compare nDCG "
    "within a share, not between shares. p is corrected over the settings with the same exact search and share."
)
SHARED_TIMES = (
    "These times are shared costs of batches, which favour exact search. Clone the benchmark with isolated execution "
    "to see the share at which exact search is as fast."
)
CHOICE = (
    "the plan of least estimated cost for such a query. The benchmark always searches the setting’s vector index, "
    "whose recall and time it shows."
)


def plot_recall(settings: Sequence[Setting]) -> Figure:
    """Return a map of the recall of each setting at each share, the smallest share left."""
    shares = _list_shares(settings)
    columns, labels = [render_share(share) for share in shares], [wrap_text(setting.label) for setting in settings]
    by_share = [{rung.share: rung.recall for rung in setting.rungs} for setting in settings]
    recalls = [[recalls.get(share) for share in shares] for recalls in by_share]
    texts = [["–" if recall is None else f"{recall:.3f}" for recall in line] for line in recalls]
    trace: Figure = {
        "type": "heatmap",
        "x": columns,
        "y": labels,
        "z": recalls,
        "zmin": 0,
        "zmax": 1,
        "xgap": 2,
        "ygap": 2,
    }
    trace |= {"colorscale": [[0, "#b3423a"], [0.5, "#c9a227"], [1, "#1f7a55"]], "showscale": False}
    trace |= {"text": texts, "texttemplate": "%{text}", "textfont": {"color": "#ffffff"}}
    trace |= {"hovertemplate": "%{y}<br>%{x} of the documents<br>agreement with exact %{text}<extra></extra>"}
    height = compute_height([setting.label for setting in settings]) + 90
    x = {"type": "category", "title": {"text": "documents admitted"}}
    return figure(trace, x=x, y={"autorange": "reversed"}, height=height, margin=(16, 16, 8, 64))


def plot_times(settings: Sequence[Setting], time: str) -> Figure:
    """Return the milliseconds of each setting over the logarithm of the share; exact search is dashed."""
    points = {setting.label: [(rung.share, rung.ms) for rung in setting.rungs if rung.ms] for setting in settings}
    lines = [page.Line(each.label, points[each.label], is_dashed=each.rungs[0].is_exact) for each in settings]
    shares = _list_shares(settings)
    ticks = {"tickvals": shares, "ticktext": [render_share(share) for share in shares]}
    times = [ms for line in lines for _, ms in line.points]
    return page.plot_lines(
        lines,
        hover="%{x} of the documents<br>%{y:.2f} ms<extra>%{fullData.name}</extra>",
        x={"type": "log", "title": {"text": "documents admitted"}, **ticks},
        y={"title": {"text": time}, **(time_axis(times) if times else {})},
    )


def _list_shares(settings: Sequence[Setting]) -> list[float]:
    return sorted({rung.share for setting in settings for rung in setting.rungs})


def build_content(benchmark: Benchmark) -> page.Content:
    """Return the content of the page: the figures of all settings, and a table of each."""
    settings, k = list_settings(benchmark), benchmark.primary_k
    if not settings:
        return (), {}
    runs = [rung.run for setting in settings for rung in setting.rungs]
    time, selection = name_search_ms(runs), find_selection(benchmark.dataset_version, {run.pk for run in runs})
    warnings = [selection.caveat] if selection else []
    warnings += [SHARED_TIMES] if benchmark.execution == Benchmark.Execution.SHARED else []
    shares = "by the share of the documents that a filter admits"
    figures = (plot_recall(settings), plot_times(settings, time))
    labels = ("agreement of each setting with exact search at each share", f"{time} of each setting over the share")
    overview = [
        page.Section("Search under filters", shares, warnings, text=INTRODUCTION),
        page.Section("Agreement with exact search", figure=figures[0], label=labels[0]),
        page.Section("Time", f"{time}; exact search is dashed", figure=figures[1], label=labels[1]),
    ]
    columns = (
        page.Column("Run", lambda rung: page.Cell(f"run {rung.run.run_order}", run=rung.run), kind="bb-whole"),
        page.Column("Share", _show_share),
        page.agreement_column(k),
        page.Column("queries with an admitted relevant document", _count_answerable),
        page.Column(f"their nDCG@{k}", lambda rung: value(rung.ndcg)),
        page.difference_column(f"nDCG@{k}"),
        page.Column(time, lambda rung: milliseconds(rung.ms)),
        page.Column("PostgreSQL would choose", _show_choice, kind="bb-wide"),
        page.Column("Queries", _show_unanswered, kind="bb-wide"),
    )
    tables = [
        page.Section(one.label, sentences=[("", one.sentence)], columns=columns, rungs=one.rungs) for one in settings
    ]
    return [*overview, *tables], {"PostgreSQL would choose": CHOICE}


def _show_share(rung: ShareRung) -> page.Cell:
    return page.Cell(render_share(rung.share), rung.admitted_text if rung.share < 1 else "")


def _count_answerable(rung: ShareRung) -> str:
    if rung.answerable is None:
        return "–"
    return f"{rung.answerable:,} of {rung.run.benchmark.dataset_version.query_count:,}"


def _show_choice(rung: ShareRung) -> page.Cell:
    """Return what PostgreSQL would choose, with its plan."""
    return page.Cell(rung.choice, details=rung.facts.chosen.plan) if rung.facts.chosen else page.Cell("–")


def _show_unanswered(rung: ShareRung) -> page.Cell:
    short, exactly = rung.facts.short, rung.facts.searched_exactly
    if not short and not exactly:
        return page.Cell("all answered in full")
    left_out = f"{counted(exactly, 'query')} searched exactly and left out of the recall" if exactly else ""
    return page.Cell(f"{counted(short, 'query')} found too few" if short else "", left_out)


LADDER = page.Ladder(
    "filters",
    "Filters",
    "filter_alt",
    has_shares,
    build_content,
    "No dense or hybrid run with a filter share has completed. Add shares such as 1, 0.1 and 0.01 to a benchmark, and "
    "“exact” with the settings to compare.",
)
