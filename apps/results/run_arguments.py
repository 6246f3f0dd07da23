"""Arguments of `run_benchmark`: what is run, how, and the report of SPEC-002."""

from pathlib import Path

from django.core.management.base import CommandParser

from apps.benchmarks.defining.matrix_options import whole_number
from benchbench.files.experiment import PRESETS
from benchbench.files.spec002 import LIMIT


def add_what_is_run(parser: CommandParser) -> None:
    parser.add_argument("mapping", nargs="?", help="Name (or id) of the mapping to run over.")
    parser.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="In place of a mapping: judged queries in BenchBench JSON, module queries (SPEC-001), or any other format "
        "of datasets (docs/formats.md); imported and mapped to --collection first, where that is not done yet.",
    )
    parser.add_argument("--collection", metavar="NAME", help="With --queries: name (or id) of the collection.")
    parser.add_argument(
        "--experiment",
        type=Path,
        metavar="FILE",
        help="In place of a mapping: run each combination of strategy, backend and embedding of this YAML file, "
        "over the documents and questions that it names (docs/formats.md); it states depth, measures and seed too. "
        "Or run the experiment.yaml of a benchmark again, and compare the figures.",
    )
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        help="With --experiment: how many documents it keeps and how often it asks each query, instead of its own.",
    )


def add_execution(parser: CommandParser) -> None:
    execution = parser.add_argument_group("execution")
    execution.add_argument(
        "--execution",
        choices=["shared", "isolated"],
        help="shared (default): what runs have in common is done once; isolated (default with --verbose and "
        "--output-dir): query by query, for honest times. Rankings are the same.",
    )
    execution.add_argument("--seed", type=int, metavar="N", help="Seed of everything random (default: 42).")
    execution.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")
    execution.add_argument("--wait", action="store_true", help="Wait for the end; works the queue if no worker does.")


def add_report_of_spec002(parser: CommandParser) -> None:
    told = parser.add_argument_group("report of SPEC-002")
    told.add_argument(
        "--verbose", action="store_true", help="Wait, and print each query as it ends, then totals with bars."
    )
    told.add_argument(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="Wait, and write each run's baseline_YYYYMMDD_HHMMSS.json there, of several runs into DIR/run-N; with "
        "--experiment the results directory of the strategy benchmark, DIR/ID.",
    )
    told.add_argument(
        "--limit",
        type=whole_number,
        metavar="N",
        help=f"How many of a query's documents these two look at (default: {LIMIT}).",
    )
