"""Quality over time as plain SVG: positions in pixels, for files that no library draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apps.results.charts import time_axis

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 700, 16, 280  # of the frame
ROOM = 0.08  # of the frame, between its edges and the outermost points
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """One run. `mark`: its place on the frontier of quality and cost: "chosen", "frontier" or ""."""

    ms: float
    quality: float
    rank: int
    label: str
    mark: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with its position."""

    x: float
    y: float
    point: Point


@dataclass(frozen=True, slots=True)
class Scatter:
    """The dots, and the ticks of both axes with their texts."""

    dots: list[Dot]
    columns: list[tuple[float, str]]
    rows: list[tuple[float, str]]


def draw_scatter(points: Sequence[Point]) -> Scatter | None:
    """Return the picture of runs, with a logarithmic axis of times far apart; None without runs."""
    if not points:
        return None
    axis = time_axis([point.ms for point in points])
    if axis.get("type") == "log":
        times = [math.log10(point.ms) for point in points]
        marks = [(math.log10(tick), text) for tick, text in zip(axis["tickvals"], axis["ticktext"], strict=True)]
        left, right = _widen(min(times), max(times))
    else:
        times = [point.ms for point in points]
        left, right = 0.0, _widen(0.0, max(times))[1]
        marks = list_ticks(left, right)
    low, high = _widen(min(point.quality for point in points), max(point.quality for point in points))

    def find_x(time: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (time - left) / (right - left), 1)

    def find_y(quality: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * (quality - low) / (high - low), 1)

    return Scatter(
        [Dot(find_x(time), find_y(point.quality), point) for time, point in zip(times, points, strict=True)],
        [(find_x(time), text) for time, text in marks if left <= time <= right],
        [(find_y(value), text) for value, text in list_ticks(low, high)],
    )


def list_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return at most 6 round numbers from `low` to `high`, with their texts."""
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    numbers = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [(number, f"{round(number, 10):g}") for number in numbers]


def _widen(low: float, high: float) -> tuple[float, float]:
    room = ROOM * ((high - low) or abs(high) or 1)
    return low - room, high + room
