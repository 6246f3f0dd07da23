"""The ladder of load: runs that differ only in their rate, with latency and agreement at each, and the knee."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from apps.records.models import Benchmark, Run
from apps.records.models.timing import OpenLoop
from apps.results.charts import Figure, time_axis
from apps.results.ladders import page
from apps.results.templatetags.benchbench import DASH, milliseconds
from benchbench.decimals import format_ms, list_some
from benchbench.ir.planning.configuration import Configuration

LEAST_SHARE = 0.98  # of the offered rate that is achieved at a sustained one,
MOST_TIMES = 3  # where a percentile is at most so many times that at the lowest measured rate:
LEAST_ANSWERS = {"p99": 1000, "p95": 100}  # the first of which all runs have enough answers, as it rests on few
LEGEND = {
    "Latency": "from the moment at which a query was due to its answer, with its waiting for a free thread. Runs that "
    "ask a search engine have the times of its requests alone. Agreement is that of the dense list under load."
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRung(page.Rung):
    """A setting at one rate."""

    label: str
    loop: OpenLoop

    @property
    def keeps_up(self) -> bool:
        return self.loop.achieved is not None and self.loop.achieved >= LEAST_SHARE * self.loop.offered


@dataclass(frozen=True)
class Setting:
    """Rungs of runs that differ only in their rate, the lowest first."""

    label: str
    method: str
    rungs: Sequence[RateRung]

    @cached_property
    def percentile(self) -> str:
        """Return the percentile that the criterion compares; "" if a run has too few answers for any."""
        fewest = min(rung.loop.requests for rung in self.rungs)
        return next((name for name, answers in LEAST_ANSWERS.items() if fewest >= answers), "")

    @cached_property
    def knee(self) -> RateRung | None:
        """Return the rung of the highest measured rate before the first that is not sustained."""
        return [None, *takewhile(self.is_sustained, self.rungs)][-1]

    def is_sustained(self, rung: RateRung) -> bool:
        name = self.percentile
        is_quick = bool(name) and rung.loop.latency_ms[name] <= MOST_TIMES * self.rungs[0].loop.latency_ms[name]
        return rung.keeps_up and is_quick

    @property
    def sentence(self) -> str:
        """Return the knee in words."""
        name, knee = self.percentile, self.knee
        if not name:
            return "No knee: a run has fewer than 100 answers, too few for p95. Choose higher rates or more queries."
        if knee == self.rungs[-1]:
            return f"The knee is at least {knee.loop.offered:g}/s, the highest measured rate, by {name}."
        broken = self.rungs[self.rungs.index(knee) + 1 if knee else 0]
        times = [format_ms(rung.loop.latency_ms[name]) for rung in (broken, self.rungs[0])]
        reason = f"{name} is {times[0]} ms instead of {times[1]} ms"
        if not broken.keeps_up:
            reason = f"only {broken.loop.achieved or 0:.1f}/s are answered"
        result = f"The knee is {knee.loop.offered:g}/s" if knee else "No knee"
        sentence = f"{result}: at {broken.loop.offered:g}/s {reason}."
        higher = filter(self.is_sustained, self.rungs[self.rungs.index(broken) :])
        if again := [f"{rung.loop.offered:g}/s" for rung in higher]:
            sentence += f" Yet it sustained {list_some(again)}: this is not monotone. Repeat it on an idle machine."
        return sentence


def has_loads(benchmark: Benchmark) -> bool:
    """Return whether the matrix of a benchmark has several rates."""
    return sum(bool(rate) for rate in benchmark.matrix.get("rates", ())) > 1


def load_settings(benchmark: Benchmark) -> list[Setting]:
    """Return the settings of a benchmark's completed runs with a rate, in the order of the runs."""
    runs = benchmark.runs.filter(status=Run.Status.COMPLETED, timing__has_key="open_loop").order_by("run_order")
    by_setting: dict[Configuration, list[Run]] = {}
    for run in runs:
        by_setting.setdefault(replace(run.configuration, rate=None), []).append(run)
    labels = page.list_labels(by_setting)
    return [_build_setting(label, *group) for label, group in zip(labels, by_setting.items(), strict=True)]


def _build_setting(label: str, configuration: Configuration, runs: Sequence[Run]) -> Setting:
    method = configuration.ann.partition("(")[0] if configuration.uses_vectors else configuration.search_mode
    loops = [(run, loop) for run in runs if (loop := run.times.open_loop)]
    rungs = [
        RateRung(run=run, recall=page.find_recall(run, loop.recall), label=label, loop=loop) for run, loop in loops
    ]
    return Setting(label, method, sorted(rungs, key=lambda rung: rung.loop.offered))


def plot_latencies(settings: Sequence[Setting]) -> Figure | None:
    """Return the percentile of the criterion over the offered rate; None if all runs have too few answers for one."""
    name = min((setting.percentile for setting in settings if setting.percentile), default="")
    lines = [
        page.Line(setting.label, [(rung.loop.offered, rung.loop.latency_ms[name]) for rung in setting.rungs])
        for setting in settings
        if setting.percentile
    ]
    if not lines:
        return None
    axis = time_axis([ms for line in lines for _, ms in line.points])
    return page.plot_lines(
        lines,
        hover=f"%{{x:g}}/s: {name} %{{y:.1f}} ms<extra></extra>",
        x={"title": {"text": "offered requests per second"}, "rangemode": "tozero"},
        y={"title": {"text": f"{name} in ms, from when a query was due"}, **axis},
    )


def plot_recalls(settings: Sequence[Setting], k: int) -> Figure | None:
    """Return the highest sustained rate of each setting over its recall, a line for each method; None without any."""
    knees: dict[str, list[tuple[float, float, str]]] = {}
    for setting in settings:
        if setting.knee and setting.knee.recall is not None:
            knee = setting.knee.recall, setting.knee.loop.offered, setting.label
            knees.setdefault(setting.method, []).append(knee)
    if not knees:
        return None
    lines = [
        page.Line(method, [knee[:2] for knee in sorted(group)], [label for *_, label in sorted(group)])
        for method, group in knees.items()
    ]
    lowest = min(recall for line in lines for recall, _ in line.points)
    x = {"title": {"text": f"agreement with exact, top {k}"}, "tickformat": ".3~f", "range": [lowest - 0.05, 1.005]}
    return page.plot_lines(
        lines,
        hover="%{text}<br>%{y:g}/s at agreement %{x:.3f}<extra></extra>",
        x=x,
        y={"title": {"text": "highest sustained rate per second"}, "rangemode": "tozero"},
    )


def build_content(benchmark: Benchmark) -> page.Content:
    """Return the content of the page: the knee of each setting, the figures, and a table of all rates."""
    settings, k = load_settings(benchmark), benchmark.primary_k
    if not settings:
        return (), {}
    knees = page.Section(
        "Knees",
        "the highest rate before the first that a setting does not sustain",
        sentences=[(setting.label, setting.sentence) for setting in settings],
        text=(
            f"A setting sustains a rate if its answers come at {100 * LEAST_SHARE:g} % of it or more, and if p99 is at "
            f"most {MOST_TIMES} times p99 at the lowest measured rate. If a run has fewer than "
            f"{LEAST_ANSWERS['p99']:,} answers, p95 counts instead, because p99 would rest on few of them."
        ),
    )
    latencies = page.Section(
        "Latency by rate",
        figure=plot_latencies(settings),
        label="p99, or p95 of few answers, over the offered rate, a line for each setting",
    )
    recalls = page.Section(
        "Rate by agreement with exact search",
        "a line for each method of dense search",
        figure=plot_recalls(settings, k),
        label="the highest sustained rate of each setting over its agreement with exact search",
    )
    figures = [section for section in (latencies, recalls) if section.figure]
    return [knees, *figures, _build_table(settings, k)], LEGEND


def _build_table(settings: Sequence[Setting], k: int) -> page.Section:
    knees = [setting.knee for setting in settings]
    columns = (
        page.Column(
            "Setting", lambda rung: page.Cell(rung.label, "knee" if rung in knees else "", rung.run), kind="bb-wide"
        ),
        page.Column("Offered", lambda rung: _format_rate(rung.loop.offered).replace(".0/", "/")),
        page.Column("Achieved", lambda rung: _format_rate(rung.loop.achieved)),
        *(_percentile_column(name) for name in ("p50", "p95", "p99")),
        page.agreement_column(k),
        page.Column("Answers", lambda rung: f"{rung.loop.requests:,}"),
        page.Column("Threads", lambda rung: str(rung.loop.threads)),
    )
    return page.Section("Rates", columns=columns, rungs=[rung for setting in settings for rung in setting.rungs])


def _percentile_column(name: str) -> page.Column:
    return page.Column(f"{name} in ms", lambda rung: milliseconds(rung.loop.latency_ms.get(name)))


def _format_rate(rate: float | None) -> str:
    return DASH if rate is None else f"{rate:.1f}/s"


LADDER = page.Ladder(
    "load",
    "Load",
    "speed",
    has_loads,
    build_content,
    "No run with a rate has completed. Choose isolated execution and several requests per second in a new benchmark.",
)
