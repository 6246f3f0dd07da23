"""Columns with numbers of benchmarks and runs, in their lists and in those of datasets and indexes."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.db.models import Count, F, Func, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from unfold.decorators import display
from unfold.sections import TemplateSection

from apps.datasets.models import Dataset
from apps.records.measuring.primary import annotate_last, order_by_fact
from apps.records.models import Benchmark, BenchmarkVerdict, Run
from apps.retrieval.models import Index
from apps.verdicts.stored import get_current, has_verdict
from benchbench.access import viewable
from benchbench.decimals import counted, figure, format_share
from benchbench.durations import format_duration, measure_seconds
from benchbench.ir.demand import name_mean, name_means
from benchbench.site.lists import ListAdmin, read_measure
from benchbench.site.panels import add_to, build_list_url, change_url


@display(description="value", ordering=order_by_fact("value"), empty_value="–")
def value(row: Any) -> str | None:
    """Return the primary measure of a run, or of the best run of a benchmark: ".6451 nDCG@10"."""
    facts = row.facts
    if not facts:
        return None
    hints = filter(None, [f"nDCG@{facts['k']}", name_means(facts["weighting"])])
    words = format_html_join(" ", '<span class="bb-hint">{}</span>', ((hint,) for hint in hints))
    return format_html("{} {}", figure(facts["value"]), words)


@lru_cache(maxsize=256)  # the same function each time, which Django needs to sort by it
def build_measured(measure: str) -> Callable[[Any], str | None]:
    """Return the column with the mean of a measure; "" for none."""

    @display(description=f"mean {measure}" if measure else "measure", ordering=order_by_fact("chosen"), empty_value="–")
    def measured(row: Any) -> str | None:
        number = row.facts and row.facts["chosen"]
        return None if number is None else name_mean(figure(number), name_means(row.facts["weighting"]))

    return measured


class MeasuredAdmin(ListAdmin):
    """Admin class of rows with `facts`, of which a user chooses a measure as the column after `value`."""

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        names = super().get_list_display(request)
        position = names.index(value) + 1
        return [*names[:position], build_measured(read_measure(request)), *names[position:]]

    def list_measures(self, request: HttpRequest) -> list[str]:
        """Return the measures of the benchmarks that the user may see, each with its least cutoff first."""
        benchmarks = viewable(Benchmark.objects.order_by(), request.user)
        rows = benchmarks.annotate(measure=Func("measures", function="unnest")).values_list("measure", flat=True)
        return sorted(rows.distinct(), key=lambda name: (name.partition("@")[0].lower(), len(name), name))


@display(description="best run", ordering="facts__label", empty_value="–")
def best_run(row: Any) -> str | None:
    facts = row.facts
    return facts and format_html('<a href="{}">{}</a>', change_url(Run, facts["run"]), facts["label"])


@display(description="judged", ordering=order_by_fact("judged"), empty_value="–")
def judged(row: Any) -> str | None:
    facts = row.facts
    if not facts or facts["judged"] is None:
        return None
    return name_mean(format_share(facts["judged"]), name_means(facts["weighting"]))


@display(description="verdict", empty_value="–")
def verdict(benchmark: Benchmark) -> str | None:
    """Return the stored verdict in a few words; one that is missing or out of date is renewed once it is in view."""
    if not has_verdict(benchmark):
        return None
    if stored := get_current(benchmark):
        return render_words(stored)
    url = reverse("admin:benchmark_verdict", args=[benchmark.pk])
    return format_html(
        '<span class="bb-hint" hx-get="{}?brief=words" hx-trigger="intersect once" hx-swap="outerHTML">…</span>', url
    )


def render_words(stored: BenchmarkVerdict) -> str:
    """Return a verdict in a few words as the button that opens the row."""
    return format_html(
        '<button type="button" class="bb-opener" title="{}" x-on:click="rowOpen = !rowOpen" '
        'x-bind:aria-expanded="rowOpen">{}</button>',
        stored.words,
        stored.words,
    )


class VerdictSection(TemplateSection):
    """Contents of a benchmark's opened row: its verdict in sentences, its description and its tags."""

    template_name = "benchmarks/verdict_section.html"

    def get_context_data(self, request: HttpRequest, instance: Any) -> dict[str, Any]:
        tags = [(build_list_url(Benchmark, tag=tag), tag) for tag in instance.tags]
        return {"has_verdict": has_verdict(instance), "stored": get_current(instance), "tags": tags}


@display(description="took", ordering=F("completed_at") - F("started_at"), empty_value="–")
def took(benchmark: Benchmark) -> str | None:
    seconds = measure_seconds(benchmark.started_at, benchmark.completed_at)
    return None if seconds is None else format_duration(seconds)


def annotate_datasets(request: HttpRequest, datasets: QuerySet[Dataset]) -> QuerySet[Dataset]:
    return annotate_last(datasets, request.user, mapping__dataset=OuterRef("pk"))


@display(description="last benchmark", ordering="last_at", empty_value="–")
def last_benchmark(dataset: Any) -> str | None:
    last = dataset.last
    url = last and reverse("admin:benchmark_results", args=[last["id"]])
    return last and format_html('<a href="{}">{}</a>', url, last["name"])


def annotate_indexes(request: HttpRequest, indexes: QuerySet[Index]) -> QuerySet[Index]:
    """Annotate the number of benchmarks with runs on each index that the user may see."""
    runs = viewable(Run.objects.filter(index=OuterRef("pk")), request.user, through="benchmark").order_by()
    benchmarks = runs.values("index").annotate(users=Count("benchmark", distinct=True))
    return indexes.annotate(users=Coalesce(Subquery(benchmarks.values("users")), 0))


@display(description="used by", ordering="users", empty_value="–")
def used_by(index: Any) -> str | None:
    address = build_list_url(Run, index__id__exact=index.pk)
    return format_html('<a href="{}">{}</a>', address, counted(index.users, "benchmark")) if index.users else None


add_to(Dataset, columns=(last_benchmark, value, judged), annotate=annotate_datasets)
add_to(Index, columns=(used_by,), annotate=annotate_indexes)
