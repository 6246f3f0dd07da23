"""How templates show differences, intervals and p-values."""

from typing import Any

from django import template

from apps.results.comparison_figures import p_text
from benchbench.ir.resampling import Interval, MeanInterval

register = template.Library()

DASH = "–"


@register.filter
def signed(number: float | None, decimals: int = 4) -> str:
    """A difference: `+.0123`, `−.0400`; a dash where there is none."""
    if number is None:
        return DASH
    shown = f"{abs(number):.{decimals}f}"
    sign = "" if not float(shown) else "−" if number < 0 else "+"
    return sign + (shown.removeprefix("0") if shown.startswith("0.") else shown)


@register.filter
def interval(ends: Interval | None) -> str:
    """`[−.0041, +.0210]`; a dash where there is none."""
    return DASH if ends is None else f"[{signed(ends.low)}, {signed(ends.high)}]"


@register.filter
def p(number: float | None) -> str:
    return DASH if number is None else p_text(number)


@register.filter
def mean_of(cell: Any) -> float | None:
    """The mean of a cell that may come with its interval."""
    return cell.mean if isinstance(cell, MeanInterval) else cell
