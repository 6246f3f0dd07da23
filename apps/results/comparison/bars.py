"""Differences as small bars in the rows of a table: an interval, its centre and zero, on one scale for all rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from benchbench.ir.statistics.resampling import Interval

WIDTH = 120  # pixels of every bar
MARGIN = 6  # pixels at both ends, for half a dot

Colour = Literal["better", "worse", "open"]


@dataclass(frozen=True, slots=True)
class Line:
    """A difference, with its interval if one is known."""

    difference: float
    interval: Interval | None
    colour: Colour = "open"

    @property
    def ends(self) -> Interval:
        return self.interval or Interval(self.difference, self.difference)


@dataclass(frozen=True, slots=True)
class Bar:
    """The pixels of an interval, its centre and zero, from the left."""

    low: float
    high: float
    centre: float
    zero: float
    colour: Colour


def draw_bars(lines: Iterable[Line | None]) -> list[Bar | None]:
    """Return a bar for each line. The scale spans zero and all intervals."""
    rows = list(lines)
    ends = [end for line in rows if line for end in (line.ends.low, line.ends.high)]
    lowest, highest = min([0.0, *ends]), max([0.0, *ends])

    def locate(number: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * (number - lowest) / ((highest - lowest) or 1), 1)

    return [
        None
        if line is None
        else Bar(
            low=locate(line.ends.low),
            high=locate(line.ends.high),
            centre=locate(line.difference),
            zero=locate(0.0),
            colour=line.colour,
        )
        for line in rows
    ]
