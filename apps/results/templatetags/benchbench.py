"""Filters and tags that show measures, values, intervals, times, and links to pages."""

import json
import re
import shlex
from datetime import datetime
from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Model
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.text import slugify

from apps.collections.models import Document
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Run
from apps.records.models.timing import Timing
from apps.results.triage.causes import CAUSES
from benchbench import decimals, durations
from benchbench.decimals import figure, format_p, short_signed
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.wording import describe_few_changes
from benchbench.ir.triage import Loss
from benchbench.names import find_rows
from benchbench.site.panels import change_url, may_open

register = template.Library()
register.filter("few_changes", describe_few_changes)
COMMAND = re.compile(r"`(benchbench [a-z_ ]+)`")

DASH = "–"


@register.filter
def filled(value: object, text: str) -> str:
    """Fill a value into a text with `{}`, counts with commas; "" for an empty value.

    `{{ owner|filled:"; owned by {}" }}` also holds a sentence together where the formatter would break the line after
    an `{% endif %}`.
    """
    return text.format(intcomma(value) if isinstance(value, int) else value) if value else ""


@register.simple_block_tag
def scroll(content: str, label: str, id: str = "", kind: str = "bb-scroll") -> str:
    """Wrap content that may be wider than the page in a named region that can be scrolled by keyboard.

    With an `id` it keeps its scroll position when the page is refreshed.
    """
    identity = format_html(' id="{}"', id) if id else ""
    return format_html(
        '<div class="{}"{} role="region" aria-label="{}" tabindex="0">{}</div>', kind, identity, label, content
    )


@register.simple_block_tag
def table(content: str, label: str, id: str = "", kind: str = "") -> str:
    """Wrap the head and body of a table in a table with a scrollable frame."""
    return scroll(format_html('<table class="{}">{}</table>', f"bb-table {kind}".strip(), content), label, id)


@register.filter
def with_commands(sentence: str) -> str:
    """Show the commands between backticks in a sentence of ours as code."""
    pieces = enumerate(COMMAND.split(sentence))
    texts = (format_html("<code>{}</code>", piece) if number % 2 else piece for number, piece in pieces)
    return format_html_join("", "{}", ((text,) for text in texts))


@register.filter
def value(number: float | None, decimals: int = 4) -> str:
    """Format a measure's value: `.6451`; a dash if it is missing."""
    return figure(number, decimals) if isinstance(number, int | float) else DASH


@register.filter
def difference(number: float | None) -> str:
    """Format the distance to the best: `−.0123`; "" for the best itself."""
    return short_signed(-abs(number)) if number else ""


@register.filter
def signed(number: float | None, decimals: int = 4) -> str:
    """Format a difference with its sign: `+.0123`, `−1.0000`, `.0000` if it rounds to that; a dash if it is missing."""
    return short_signed(number, decimals) if isinstance(number, int | float) else DASH


@register.filter
def cause_name(loss: Loss) -> str:
    """Return the name of a cause of loss: `Demoted by the reranker`."""
    return CAUSES[loss].name


@register.filter
def milliseconds(number: float | None) -> str:
    """Format milliseconds with three significant digits: `0.82`, `14.3`, `1,250`."""
    return decimals.format_ms(number) if isinstance(number, int | float) else DASH  # "" is a template's missing key


@register.filter
def duration(seconds: float | None) -> str:
    """Format seconds as `8 s`, `2 min 5 s`, `1 h 12 min`."""
    return DASH if seconds is None else durations.format_duration(seconds)


@register.filter
def until(start: datetime | None, end: datetime | None) -> str:
    """Format the time from `start` to `end`."""
    return duration(durations.measure_seconds(start, end))


@register.filter
def page_of(row: Model) -> str:
    """Return the URL of a row's page: for a benchmark its results."""
    return reverse("admin:benchmark_results", args=[row.pk]) if isinstance(row, Benchmark) else change_url(row)


@register.simple_tag(takes_context=True)
def href(context: Context, row: Any, page: str = "", suffix: str = "", version: int | None = None) -> str:
    """Return the attribute that leads to a page of a row, by default its first; "" if the user may not open it.

    The `suffix` follows the address, as does the number of a dataset's `version`.
    """
    if not may_open(context["request"], row):
        return ""
    end = suffix if version is None else f"?version={version}"
    return format_html('href="{}{}"', reverse(page, args=[row.pk]) if page else page_of(row), end)


@register.filter
def is_first(measure: str, primary: str) -> bool:
    """Return whether pages show a measure before their reader asks for more: the primary one, RR and AP."""
    return measure in (primary, "RR", "AP")


@register.filter
def as_argument(row: Benchmark | Dataset | Mapping | Run) -> str:
    """Return how a command names a row: by its name, quoted for a shell, or by its id if several have this name."""
    if isinstance(row, Run):
        return f"{as_argument(row.benchmark)} --run {row.run_order}"
    is_clear = find_rows(type(row)._default_manager.all(), row.name) == [row] and not row.name.startswith("-")
    return shlex.quote(row.name) if is_clear else str(row.pk)


@register.filter
def noun(row: Model) -> Any:
    return row._meta.verbose_name


@register.filter
def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 query`, `2,345 queries`."""
    return decimals.counted(number, noun)


@register.filter
def percent(share: float) -> str:
    """Format a share of 1 as `3.1 %`."""
    return decimals.format_share(share)


@register.filter
def p_value(p: float) -> str:
    """Format `p = .031`; `p < .001` below that."""
    text = format_p(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


@register.filter
def interval(ends: Interval | None) -> str:
    """Format an interval as `[−.0041, +.0210]`; a dash if it is missing."""
    return DASH if ends is None else f"[{signed(ends.low)}, {signed(ends.high)}]"


@register.filter
def p(number: float | None) -> str:
    """Format `.031`; `< .001` below that; a dash if it is missing."""
    return DASH if number is None else format_p(number)


@register.filter
def minus(number: int, amount: int) -> int:
    return number - amount


@register.filter
def cut_words(text: str, longest: int) -> str:
    """Cut a text after the last word that fits; inside a word that is longer than half of it."""
    head = text[:longest].rpartition(" ")[0]
    return text if len(text) <= longest else f"{head if 2 * len(head) > longest else text[: longest - 1]}…"


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def stage(times: Timing, name: str) -> float | None:
    """Return the mean milliseconds of a stage in a run's times."""
    return times.get_mean(f"{name}_ms")


@register.filter
def pretty_json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


@register.inclusion_tag("results/measure_link.html")
def measure_link(name: str, id_prefix: str, label: str = "") -> dict[str, object]:
    """Render a measure's name or `label`, which opens its definition; `id_prefix` keeps ids unique on the page."""
    measure = Measure.parse(name)
    facts = {"definition": measure.definition, "cutoff": measure.cutoff}
    return facts | {"id": f"define-{id_prefix}-{slugify(name)}", "label": label or name}


@register.inclusion_tag("results/judge.html", takes_context=True)
def judge(context: Context, document: Document | None, grade: int | None) -> dict[str, object]:
    """Render the link to the form that judges a document, and the draft's grade if it differs from `grade`."""
    judging = context.get("judging")
    if judging is None or document is None:
        return {}
    link = {"change": judging.change(document.pk, grade)}
    if judging.permitted and document.removed_at is None:
        parameters = {"result": judging.result.pk, "document": document.pk, "next": context["request"].get_full_path()}
        url = reverse("admin:query_judge", args=[judging.result.query_id])
        link["judge_url"] = f"{url}?{urlencode(parameters)}"
    return link
