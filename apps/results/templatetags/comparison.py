"""Filters that show intervals and p-values."""

from django import template

from apps.results.comparison.figures import p_text
from apps.results.templatetags.benchbench import DASH, signed
from benchbench.ir.statistics.resampling import Interval

register = template.Library()


@register.filter
def interval(ends: Interval | None) -> str:
    """`[−.0041, +.0210]`; a dash where there is none."""
    return DASH if ends is None else f"[{signed(ends.low)}, {signed(ends.high)}]"


@register.filter
def p(number: float | None) -> str:
    return DASH if number is None else p_text(number)
