"""Measure the finished runs of a benchmark on another version of its dataset."""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.measuring.again import RescoringResult, find_version, rescore
from apps.benchmarks.measuring.measures import add_measures
from apps.benchmarks.models import Benchmark
from apps.operations.commands import UseCaseCommand
from benchbench.ir.measures import Measure
from benchbench.names import find_named
from benchbench.reading.kinds import split_calls


class Command(UseCaseCommand):
    help = """Measure the finished runs of a benchmark on another version of its dataset, or by further measures.

It uses stored rankings and runs no searches. Values on other versions are kept.

  benchbench rescore scifact
  benchbench rescore scifact --dataset-version 2
  benchbench rescore scifact --measures "ERR@10,RBP(p=0.8)"
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", help="Name (or id) of the benchmark.")
        parser.add_argument(
            "--dataset-version", type=int, metavar="N", help="Number of the version (default: the newest frozen one)."
        )
        parser.add_argument(
            "--measures",
            type=split_calls,
            metavar="M,M",
            help='Add these measures first, such as "ERR@10,RBP(p=0.8)".',
        )
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        benchmark = find_named(Benchmark, options["benchmark"])
        number = options["dataset_version"]
        with self.busy("Measuring"):
            if options["measures"]:
                add_measures(benchmark, options["measures"], at_once=True)
            version = None if number is None else find_version(benchmark, number)
            rescored = rescore(benchmark, version=version, at_once=True)
        measures = [str(Measure.parse(name)) for name in options["measures"] or ()]
        names = list(dict.fromkeys([str(Measure("nDCG", benchmark.primary_k)), *measures]))
        self.report(_build_facts(rescored), _render_text(rescored, names), as_json=options["json"])


def _build_facts(rescored: RescoringResult) -> dict[str, Any]:
    return {
        "version": rescored.version.number,
        "unsearched": rescored.unsearched,
        "dropped": rescored.dropped,
        "runs": [
            {
                "id": str(evaluation.run_id),
                "label": evaluation.run.label,
                "queries": evaluation.query_count,
                "means": evaluation.means,
                "unranked": evaluation.unranked or None,
            }
            for evaluation in rescored.evaluations
        ],
    }


def _render_text(rescored: RescoringResult, names: Sequence[str]) -> str:
    """Return a summary, and a table of the runs with the given measures, best first by the first measure.

    Runs that lost too many queries to be ranked come last, with the reason below the table.
    """
    best_first = sorted(
        rescored.evaluations,
        key=lambda evaluation: (bool(evaluation.unranked), -(evaluation.means[names[0]] or 0)),
    )
    width = max(len(evaluation.run.label) for evaluation in best_first)
    rows = [
        [evaluation.run.label, *(_format_mean(evaluation.means[name]) for name in names)] for evaluation in best_first
    ]
    lines = [
        "  ".join(["", label.ljust(width), *(cell.ljust(len(name)) for cell, name in zip(cells, names, strict=True))])
        for label, *cells in [["", *names], *rows]
    ]
    lines += [f"{evaluation.run.label}: {evaluation.unranked}" for evaluation in best_first if evaluation.unranked]
    return "\n".join([rescored.sentence, *(line.rstrip() for line in lines)])


def _format_mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4f}"
