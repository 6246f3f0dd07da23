"""Slices of a run: its weak ones, with figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated
from uuid import UUID

import numpy as np

from apps.records.finding import flatten
from apps.records.measuring.slicing import Slicing, compute_means, load_slicing
from apps.records.models import Evaluation, Run
from apps.results.charts import compute_height, draw_line, figure, wrap_text
from apps.results.triage.queries import require_values
from apps.verdicts.ranked_runs import WEIGHTING, name_primary
from benchbench.ir.demand import name_mean
from benchbench.ir.measures import Measure
from benchbench.ir.slices import MINIMUM, Slice, WeakSlice, find_weak_slices

COLOUR, WEAK_COLOUR, QUIET_COLOUR = "#2f6fde", "#e07b39", "#94a3b8"


@dataclass(frozen=True, slots=True)
class SliceRow:
    """A row of the slice table: the means of the table's measures, and why the slice is weak, if it is.

    `slice` has the queries in the mean of the first measure.
    """

    slice: Slice
    values: list[float | None]
    weak: WeakSlice | None


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """The slices of one partition, in their own order."""

    partition: str
    rows: list[SliceRow]


def build_context(evaluation: Evaluation | None, slicing: Slicing | None, names: Sequence[str]) -> dict[str, object]:
    """Return the context of a run's slices for the measures `names`; no groups before it is measured."""
    if evaluation is None or slicing is None:
        return {"slice_groups": []}
    groups = group_slices(evaluation, slicing, names)
    return {
        "slice_groups": groups,
        "slice_overall": [evaluation.means.get(name) for name in names],
        "slice_minimum": MINIMUM,
        "weak_count": sum(row.weak is not None for group in groups for row in group.rows),
        "slice_figure": plot_slice_means(
            groups, name_mean(names[0], evaluation.means_name), evaluation.means.get(names[0])
        ),
    }


def group_slices(evaluation: Evaluation, slicing: Slicing, names: Sequence[str]) -> list[SliceGroup]:
    """Return the means of `names` by slice; the first measure decides which slices are weak.

    A weak slice is significantly below all other queries; its p is multiplied by the number of slices (`ir.slices`).
    """
    counted = evaluation.get_column(names[0])
    if evaluation.policies.get("empty_queries") == "skip":
        counted[~slicing.has_relevant] = float("nan")
    has_value = ~np.isnan(counted)
    weights = slicing.weights if evaluation.weighting == "demand" else None
    weak = {weak_slice.slice.name: weak_slice for weak_slice in find_weak_slices(counted, slicing.slices, weights)}
    rows = []
    for slice_ in slicing.slices:
        means = compute_means(evaluation, slicing, slice_, names)
        rows.append(SliceRow(slice_.restrict(has_value), [means.get(name) for name in names], weak.get(slice_.name)))
    return [
        SliceGroup(partition, list(group)) for partition, group in groupby(rows, key=lambda row: row.slice.partition)
    ]


@dataclass(frozen=True)
class WeakMeans:
    """Why a slice is an area to improve: it is significantly below all other queries."""

    mean: float
    other_mean: Annotated[float, "The mean over all other queries."]
    p: Annotated[float, "Adjusted for the number of slices."]


@dataclass(frozen=True)
class SliceMeans:
    """The means of a run over one kind of queries."""

    name: Annotated[str, "The value for the parameter `slice`."]
    partition: str
    label: str
    queries: Annotated[int, "Queries in the mean of the primary measure."]
    is_small: Annotated[bool, "Too few queries to draw a conclusion."]
    metrics_flat: dict[str, float | None]
    weak: WeakMeans | None


@dataclass(frozen=True)
class RunSlices:
    """A run by the slices of the dataset's queries."""

    run_id: UUID
    dataset_version: int
    primary: Annotated[str, "The measure that shows which slices are weak."]
    weighting: Annotated[str, WEIGHTING]
    metrics_flat: Annotated[dict[str, float | None], "Over all queries."]
    slices: list[SliceMeans]


def load_run_slices(run: Run, *, version: int | None = None) -> RunSlices:
    """Return the means of a run by slice, with wire names, on `version`, by default its benchmark's own.

    Raises NoValuesError and UnmeasuredError without values there, and SlicingError as `load_slicing` does.
    """
    evaluation = require_values(run, version)
    slicing, primary = load_slicing(run.benchmark, evaluation), name_primary(run.benchmark)
    names = [primary, *(name for name in evaluation.measures if name != primary)]
    return RunSlices(
        run_id=run.pk,
        dataset_version=evaluation.dataset_version.number,
        primary=Measure.parse(primary).wire,
        weighting=evaluation.weighting,
        metrics_flat=flatten(evaluation.means),
        slices=[
            SliceMeans(
                name=row.slice.name,
                partition=row.slice.partition,
                label=row.slice.label,
                queries=row.slice.n,
                is_small=row.slice.is_small,
                metrics_flat=flatten(dict(zip(names, row.values, strict=True))),
                weak=WeakMeans(row.weak.mean, row.weak.other_mean, row.weak.p) if row.weak else None,
            )
            for group in group_slices(evaluation, slicing, names)
            for row in group.rows
        ],
    )


def plot_slice_means(groups: Sequence[SliceGroup], name: str, overall: float | None) -> dict[str, object] | None:
    """Return the figure of the mean of `name` by slice, one row each, with a line at the mean over all queries.

    Slices that are too small for conclusions are left to the table, unless all are.
    """
    valued = [row for group in groups for row in group.rows if row.values[0] is not None]
    rows = [row for row in valued if not row.slice.is_small] or valued
    if not rows or overall is None:
        return None
    labels = [f"{row.slice.name} ({row.slice.n})" for row in rows]
    colours = [WEAK_COLOUR if row.weak else QUIET_COLOUR if row.slice.is_small else COLOUR for row in rows]
    points = {
        "type": "scatter",
        "x": [row.values[0] for row in rows],
        "y": [wrap_text(label) for label in labels],
        "mode": "markers",
        "marker": {"size": 11, "color": colours, "opacity": 0.9},
        "text": [_render_note(row) for row in rows],
        "hovertemplate": "%{y}<br>" + name + " %{x:.4f}%{text}<extra></extra>",
        "showlegend": False,
    }
    return figure(
        points,
        x={"title": {"text": f"mean {name}"}, "tickformat": ".2~f", "rangemode": "tozero", "tickangle": 0, "nticks": 6},
        y={"autorange": "reversed", "type": "category"},
        height=90 + compute_height(labels),
        margin=(16, 16, 16, 48),
        shapes=[draw_line(overall, color=QUIET_COLOUR, width=1.5, dash="dash")],
        hovermode="closest",
    )


def _render_note(row: SliceRow) -> str:
    if row.weak:
        return f"<br>area to improve, p {row.weak.p:.3f}"
    return "<br>too few queries to draw a conclusion" if row.slice.is_small else ""
