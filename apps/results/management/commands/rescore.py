"""Measure the finished runs of a benchmark on another version of its dataset."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.operations.commands import UseCaseCommand
from apps.records.measuring.again import find_version, rescore
from apps.records.measuring.measures import add_measures
from apps.records.models import Benchmark
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from benchbench.names import find_named
from benchbench.reading.calls import split_calls


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
        benchmark.refresh_from_db()  # with the added measures
        facts = {
            **asdict(build_results(benchmark, version=rescored.version)),
            "unsearched_queries": rescored.unsearched,
            "dropped_queries": rescored.dropped,
        }
        text = f"{rescored.sentence}\n{render_text(benchmark, rescored.version)}"
        self.report(facts, text, as_json=options["json"])
