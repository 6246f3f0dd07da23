"""Filters and tags that show measures, values, intervals, times, and links to pages."""

import json
from datetime import datetime
from typing import Any

from django import template
from django.db.models import Model
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.text import slugify

from apps.benchmarks.models import Benchmark
from apps.collections.models import Document
from apps.results.triage.causes import CAUSES
from benchbench import decimals
from benchbench.decimals import figure, p_text, short_signed
from benchbench.ir.measures import Measure
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.triage import Loss
from benchbench.site.panels import change_url

register = template.Library()

DASH = "–"


@register.simple_block_tag
def scroll(content: str, label: str, id: str = "", kind: str = "bb-scroll") -> str:
    """The frame of what may be wider than the page, or its like: a region with a name, that keys can scroll too.

    With an `id` it stays where it was scrolled to when the page is refreshed.
    """
    identity = format_html(' id="{}"', id) if id else ""
    return format_html(
        '<div class="{}"{} role="region" aria-label="{}" tabindex="0">{}</div>', kind, identity, label, content
    )


@register.simple_block_tag
def table(content: str, label: str, id: str = "", kind: str = "") -> str:
    """The head and body of a table, in a frame in which it may be wider than the page."""
    return scroll(format_html('<table class="{}">{}</table>', f"bb-table {kind}".strip(), content), label, id)


@register.filter
def value(number: float | None, decimals: int = 4) -> str:
    """A measure's value as people read it: `.6451`; a dash where there is none."""
    return figure(number, decimals) if isinstance(number, int | float) else DASH


@register.filter
def difference(number: float | None) -> str:
    """The distance to the best: `−.0123`; nothing for the best itself."""
    return short_signed(-abs(number)) if number else ""


@register.filter
def signed(number: float | None, decimals: int = 4) -> str:
    """A difference with its sign: `+.0123`, `−1.0000`, `.0000` for what rounds to it; a dash where there is none."""
    return short_signed(number, decimals) if isinstance(number, int | float) else DASH


@register.filter
def cause_name(loss: Loss) -> str:
    """A cause of loss in words: `Demoted by the reranker`."""
    return CAUSES[loss].name


@register.filter
def milliseconds(number: float | None) -> str:
    """Three significant digits: `0.82`, `14.3`, `1,250`."""
    if not isinstance(number, int | float):  # a template says "" for a key that is not there
        return DASH
    decimals = 2 if number < 1 else 1 if number < 100 else 0
    return f"{number:,.{decimals}f}"


@register.filter
def duration(seconds: float | None) -> str:
    """`8 s`, `2 min 5 s`, `1 h 12 min`."""
    if seconds is None:
        return DASH
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@register.filter
def until(start: datetime | None, end: datetime | None) -> str:
    """How long it took from `start` to `end`."""
    return duration((end - start).total_seconds()) if start and end else DASH


@register.filter
def page_of(row: Model) -> str:
    """The page on which people read about a row: for a benchmark its results."""
    return reverse("admin:benchmark_results", args=[row.pk]) if isinstance(row, Benchmark) else change_url(row)


@register.filter
def noun(row: Model) -> Any:
    return row._meta.verbose_name


@register.filter
def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 query`, `2,345 queries`."""
    return decimals.counted(number, noun)


@register.filter
def percent(share: float) -> str:
    """A share of 1 as `3.1 %`."""
    return f"{100 * share:.1f} %"


@register.filter
def p_value(p: float) -> str:
    """`p = .031`; `p < .001` below that."""
    shown = p_text(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


@register.filter
def interval(ends: Interval | None) -> str:
    """`[−.0041, +.0210]`; a dash where there is none."""
    return DASH if ends is None else f"[{signed(ends.low)}, {signed(ends.high)}]"


@register.filter
def p(number: float | None) -> str:
    """`.031`; `< .001` below that; a dash where there is none."""
    return DASH if number is None else p_text(number)


@register.filter
def minus(number: int, other: int) -> int:
    return number - other


@register.filter
def words(text: str) -> list[str]:
    return text.split()


@register.filter
def stage(timing: dict[str, Any], name: str) -> float | None:
    """The mean milliseconds of a stage in a run's timing."""
    return timing.get(f"{name}_ms")


@register.filter
def pretty_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


@register.inclusion_tag("results/defined.html")
def defined(name: str, place: str, label: str = "") -> dict[str, Any]:
    """The name of a measure, or `label`, that opens its definition; `place` tells apart what stands twice on a page."""
    measure = Measure.parse(name)
    shown = {"definition": measure.definition, "cutoff": measure.cutoff}
    return shown | {"id": f"define-{place}-{slugify(name)}", "label": label or name}


@register.inclusion_tag("results/judge.html", takes_context=True)
def judge(context: Context, document: Document | None, grade: int | None) -> dict[str, Any]:
    """The link to the form that judges a document, and what the draft says other than `grade`, which the page shows."""
    judging = context.get("judging")
    if judging is None or document is None:
        return {}
    found = {"change": judging.change(document.pk, grade)}
    if judging.permitted and document.removed_at is None:
        named = {"result": judging.result.pk, "document": document.pk, "next": context["request"].get_full_path()}
        url = reverse("admin:query_judge", args=[judging.result.query_id])
        found["judge_url"] = f"{url}?{urlencode(named)}"
    return found
