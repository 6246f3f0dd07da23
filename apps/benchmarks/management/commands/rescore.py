"""Measure the finished runs of a benchmark on another version of its dataset."""

from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.finding import find_benchmark
from apps.benchmarks.measures import add_measures, names_in
from apps.benchmarks.rescoring import Rescored, find_version, rescore
from apps.operations.commands import UseCaseCommand
from benchbench.ir.measures import Measure


class Command(UseCaseCommand):
    help = (
        "Measure the finished runs of a benchmark on another version of its dataset, from the rankings that are "
        "stored: nothing is searched. The values on other versions stay. Example: rescore scifact --dataset-version 2"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", help="Name (or id) of the benchmark.")
        parser.add_argument(
            "--dataset-version", type=int, metavar="N", help="Number of the version; by default the newest frozen one."
        )
        parser.add_argument(
            "--measures", type=names_in, metavar="M,M", help='First measure by these too, such as "ERR@10,RBP(p=0.8)".'
        )
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        benchmark = find_benchmark(options["benchmark"])
        if options["measures"]:
            add_measures(benchmark, options["measures"])
        number = options["dataset_version"]
        rescored = rescore(benchmark, version=None if number is None else find_version(benchmark, number))
        name = str(Measure("nDCG", benchmark.primary_k))
        self.report(_facts(rescored), _text(rescored, name), as_json=options["json"])


def _facts(rescored: Rescored) -> dict[str, Any]:
    return {
        "version": rescored.version.number,
        "unsearched": rescored.unsearched,
        "dropped": rescored.dropped,
        "runs": [
            {"id": str(one.run_id), "label": one.run.label, "queries": one.query_count, "means": one.means}
            for one in rescored.evaluations
        ],
    }


def _text(rescored: Rescored, name: str) -> str:
    best_first = sorted(rescored.evaluations, key=lambda one: -(one.means[name] or 0))
    width = max(len(one.run.label) for one in best_first)
    means = ((one.run.label, one.means[name]) for one in best_first)
    rows = [f"  {label:{width}}  {'–' if mean is None else f'{mean:.4f}'}" for label, mean in means]
    return "\n".join([rescored.sentence, f"  {'':{width}}  {name}", *rows])
