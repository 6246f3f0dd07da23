"""A benchmark as one HTML file that needs no server: verdict, leaderboard, comparison, and the queries that differ."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.template.loader import render_to_string

from apps.datasets.models import DatasetVersion
from apps.mappings.truth import read_truth
from apps.records.lists.reading import load_results
from apps.records.measuring.evaluating import get_truth_policies
from apps.records.models import Benchmark
from apps.results.comparison import panels
from apps.results.comparison.axes import compute_effects
from apps.results.comparison.bars import Line, draw_bars
from apps.results.comparison.highlights import describe_slices
from apps.results.exporters.documents import Story, load_story
from apps.results.exporters.scatter import Point, draw_scatter
from apps.results.triage.side_by_side import build_columns
from apps.verdicts import describing
from apps.verdicts.comparing import RunComparison
from apps.verdicts.sentences import describe_choice

MAX_QUERIES = 20
SHADES = 0.6  # opacity of the widest difference in the table of slices


def write_html(benchmark: Benchmark, version: DatasetVersion) -> Iterator[str]:
    """Write one page that needs no network: figures are SVG, and a few lines of script follow the keys j and k."""
    story = load_story(benchmark, version)
    comparison, _ = story.compared
    costs = describing.compute_costs(comparison, describing.Bounds()) if comparison else None
    context: dict[str, object] = {"story": story, "scatter": draw_scatter(_list_points(story, comparison, costs))}
    if comparison and costs:
        context |= _describe_comparison(comparison) | {"choice": describe_choice(comparison, costs)}
        context |= _describe_queries(comparison, benchmark)
    yield render_to_string("results/export.html", context)


def _list_points(story: Story, comparison: RunComparison | None, costs: describing.Costs | None) -> list[Point]:
    """Return the ranked runs with a time and a final value."""
    marks = {}
    if comparison and costs:
        marks = {comparison.runs[run].pk: "frontier" for run in costs.frontier}
        marks |= {comparison.runs[costs.choice.run].pk: "chosen"} if costs.choice else {}
    primary = story.board.primary
    return [
        Point(ms, quality, line.row.rank, line.label, marks.get(line.row.run.pk, ""))
        for line in story.lines
        if line.row.rank and (ms := line.row.ms) and (quality := line.row.final.get(primary)) is not None
    ]


def _describe_comparison(comparison: RunComparison) -> dict[str, object]:
    effects = compute_effects(comparison) if len(comparison.runs) > 2 else []
    bars = draw_bars(Line(effect.difference, effect.interval) for effect in effects)
    columns = panels.choose_columns(comparison)
    slices = describing.compare_slices(comparison, only=columns)
    return {
        "comparison": comparison,
        "rows": panels.build_rows(comparison, comparison.order),
        "effects": list(zip(effects, bars, strict=True)),
        "columns": [comparison.labels[run] for run in columns],
        "slices": _shade(slices, columns),
        "slice_sentence": describe_slices(comparison, columns) if slices else "",
    }


def _shade(slices: Sequence[describing.SliceDifferences], columns: Sequence[int]) -> list[dict[str, object]]:
    """Return the table rows of slices: each rival's difference with its opacity, 0 for a small slice, and colour."""
    reference, *rivals = columns
    means = [abs(row.differences[run].mean or 0) for row in slices for run in rivals if not row.slice.is_small]
    widest = max(means, default=0) or 1
    return [
        {
            "slice": row.slice,
            "mean": row.means[reference],
            "cells": [
                (
                    row.differences[run],
                    0 if row.slice.is_small else SHADES * abs(row.differences[run].mean or 0) / widest,
                    "green" if (row.differences[run].mean or 0) > 0 else "orange",
                )
                for run in rivals
            ],
        }
        for row in slices
    ]


def _describe_queries(comparison: RunComparison, benchmark: Benchmark) -> dict[str, object]:
    """Return the queries with the widest gaps between the best run and the first run below that differs from it."""
    rivals = (run for run in comparison.order if run != comparison.reference)
    pairs = ((run, describing.list_differences(comparison, run)) for run in rivals)
    rival, gaps = next(((run, gaps) for run, gaps in pairs if gaps and gaps[0].difference), (0, []))
    widest = describing.add_queries([gap for gap in gaps[:MAX_QUERIES] if gap.difference])
    ids = [gap.query_id for gap in widest]
    runs = [comparison.runs[number] for number in (comparison.reference, rival)]
    results = [load_results(run, ids, rankings=True) for run in runs]
    policies = replace(get_truth_policies(benchmark), unresolved="count")
    grades = read_truth(
        benchmark.mapping, comparison.version, state=benchmark.state, policies=policies, query_ids=ids
    ).grades
    return {
        "query_labels": [comparison.labels[number] for number in (comparison.reference, rival)],
        "queries": [
            (
                gap,
                build_columns(
                    runs,
                    (gap.reference_value, gap.value),
                    [of_run.get(gap.query_id) for of_run in results],
                    grades.get(gap.query_id, {}),
                ),
            )
            for gap in widest
        ],
    }
