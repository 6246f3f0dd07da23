"""Show what run_benchmark would do with a mapping, and do nothing."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.execution.defining.matrix_options import (
    add_allow_missing,
    add_execution,
    add_matrix_arguments,
    build_matrix,
    in_options,
)
from apps.execution.defining.previewing import preview, preview_text
from apps.mappings.models import Mapping
from apps.operations.commands import UseCaseCommand
from apps.records.models import Benchmark
from benchbench.names import find_named


class Command(UseCaseCommand):
    help = """Show the runs that run_benchmark would make of a matrix, with their work and memory, and do nothing.

  benchbench preview_benchmark scifact --rerank both --rerank-depth 20
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mapping", help="Name or id of the mapping to run over.")
        add_allow_missing(parser)
        add_matrix_arguments(parser)
        add_execution(parser)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        mapping = find_named(Mapping, options["mapping"], owner=options["owner"])
        execution = options["execution"] or Benchmark.Execution.SHARED
        with in_options():
            planned = preview(
                mapping,
                build_matrix(mapping, options),
                owner=options["owner"],
                measures=options["measures"],
                allow_missing=options["allow_missing"],
                execution=execution,
                exclude_self=options["exclude_self"],
                identical_texts=options["identical_texts"] or "different",
            )
        facts = {"total_runs": planned.total_runs} | asdict(planned)
        self.report(facts, preview_text(planned, execution), as_json=options["json"])
