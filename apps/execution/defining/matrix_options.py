"""Options of the commands that run benchmarks: the subject, the configuration matrix, the measures, the report."""

import argparse
import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.execution.defining.choosing import add_modes
from apps.mappings.filters import MissingModulesError
from apps.mappings.models import Mapping
from apps.operations.models import Priority
from benchbench.files.experiment import PRESETS
from benchbench.files.spec002 import LIMIT
from benchbench.ir.planning.axes import BY_KEY
from benchbench.ir.planning.axes.axis import Axis
from benchbench.ir.planning.axes.kinds import SWITCH, parse_integers
from benchbench.ir.planning.matrix import MatrixError
from benchbench.reading.calls import split_calls

ArgumentGroup = argparse._ArgumentGroup  # the standard library has no public name for this type

MEASURED = {"k_values_for_metrics": "--k", "primary_k": "--primary-k"}
OPTIONS = {key: axis.option for key, axis in BY_KEY.items()} | MEASURED


def add_matrix_arguments(parser: CommandParser) -> None:
    """Add the options that `build_matrix` reads, and the measures. Defaults are None; that of `--measures` is empty."""
    matrix = parser.add_argument_group("matrix", "Each list multiplies the runs of the modes that use it.")
    for key, axis in BY_KEY.items():
        letter = OPTIONS[key].strip("-")[0].upper()
        matrix.add_argument(
            OPTIONS[key],
            type=build_reader(axis.kind.read, axis.kind.reader.expects),
            metavar=f"{letter},{letter}",
            help=render_help(axis),
        )
    _add_measures(parser.add_argument_group("measures"))


def build_reader(read: Callable[[str], list[Any]], expects: str) -> Callable[[str], list[Any]]:
    """Return a function that parses the text of an option and raises errors that argparse prints."""

    def read_option(text: str) -> list[Any]:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{str(error)!r} is not {expects}") from None

    return read_option


def render_help(axis: Axis) -> str:
    """Return the help of an axis's option: its sentence, its choices and its default."""
    choices = f" {', '.join(axis.choices)}." if axis.choices else " on, off, both." if axis.kind is SWITCH else ""
    default = "all that the indexes support" if axis.key == "search_modes" else axis.default_text
    return f"{axis.help}{choices}" + (f" (default: {default})" if default else "")


def _add_measures(measures: ArgumentGroup) -> None:
    measures.add_argument(
        "--k",
        type=build_reader(parse_integers, "a whole number"),
        metavar="K,K",
        help="Cutoffs of nDCG, P and R (default: 5,10,20).",
    )
    measures.add_argument("--primary-k", type=int, metavar="K", help="Order runs by nDCG at this cutoff (default: 10).")
    measures.add_argument(
        "--measures",
        type=split_calls,
        default=[],
        metavar="M,M",
        help='Further measures, built-in or of ir_measures, such as "Success@5,ERR@10,RBP(p=0.8)" (default: none).',
    )
    measures.add_argument(
        "--unresolved",
        choices=["count", "drop"],
        help=(
            "Judgments without a document: count as not found (default), or leave out, which raises the values of "
            "every run."
        ),
    )
    measures.add_argument(
        "--empty-queries",
        choices=["zero", "skip"],
        help="Queries without a relevant judgment: count as 0 (default), or leave out of the means.",
    )
    add_weighting_argument(measures)
    add_exclude_self_argument(measures)
    measures.add_argument(
        "--identical-texts",
        choices=["different", "judged"],
        help="Documents with the text of a judged one: judge each by itself (default), or give them its grade.",
    )


def add_exclude_self_argument(parser: CommandParser | ArgumentGroup) -> None:
    parser.add_argument(
        "--exclude-self",
        action="store_true",
        help="Leave out of each ranking the document whose id is the query's key, if queries were taken from "
        "documents (ArguAna, Quora).",
    )


def add_weighting_argument(parser: CommandParser | ArgumentGroup) -> None:
    parser.add_argument(
        "--weighting",
        choices=["equal", "demand"],
        help="Means count every query alike, or by its weight (default: demand if the weights of the queries differ).",
    )


def build_matrix(mapping: Mapping, options: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration matrix that the options describe; missing options mean the default.

    Raises MatrixError if the indexes have no mode in common.
    """
    values = {key: options[name_of(option)] for key, option in OPTIONS.items()}
    axes = {key: value for key, value in values.items() if value is not None}
    return add_modes(mapping, axes, owner=options["owner"])


def name_of(option: str) -> str:
    """Return the name under which argparse stores an option."""
    return option.strip("-").replace("-", "_")


@contextlib.contextmanager
def in_options() -> Iterator[None]:
    """Replace the keys of the matrix in errors by the command-line options."""
    try:
        yield
    except MissingModulesError as error:
        raise MissingModulesError(f"{error.message} Use --allow-missing for that.", field=error.field) from error
    except MatrixError as error:
        # A key that is also an English word is replaced only at the start of the message.
        names = re.sub(r"^\w+(?=:)|\b\w+_\w+\b", lambda match: OPTIONS.get(match[0], match[0]), error.message)
        raise MatrixError(names, field=error.field) from error


def parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def add_allow_missing(parser: CommandParser) -> None:
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="Run module queries (SPEC-001) even if the collection lacks modules; those count as not found.",
    )


def add_execution(parser: CommandParser | ArgumentGroup) -> None:
    parser.add_argument(
        "--execution",
        choices=["shared", "isolated"],
        help="shared (default): common work of runs is done once; isolated (default with --verbose and "
        "--output-dir): each query by itself, for realistic times. Rankings are the same.",
    )


def add_launch(parser: CommandParser | ArgumentGroup) -> None:
    parser.add_argument(
        "--priority",
        choices=Priority.values,
        default=Priority.NORMAL,
        help="Workers take work of a higher priority first (default: normal; high only for superusers).",
    )
    parser.add_argument(
        "--wait", action="store_true", help="Wait for the end; without a running worker, do the work here."
    )


def add_what_is_run(parser: CommandParser) -> None:
    parser.add_argument("mapping", nargs="?", help="Name or id of the mapping to run over.")
    parser.add_argument(
        "--queries",
        type=Path,
        metavar="FILE",
        help="Instead of a mapping: judged queries in BenchBench JSON, module queries (SPEC-001), or any other dataset "
        "format (docs/formats.md). They are imported and mapped to --collection first, if needed.",
    )
    parser.add_argument(
        "--collection",
        metavar="NAME",
        help="With --queries: name or id of the collection. With --engines it may be left out: ids of documents do.",
    )


def add_experiment(parser: CommandParser) -> None:
    parser.add_argument(
        "experiment",
        type=Path,
        metavar="FILE",
        help="YAML: documents, questions, strategies, stores and models.",
    )
    parser.add_argument(
        "--preset", choices=PRESETS, help="Number of documents and of repetitions, instead of those in the file."
    )


def add_report_of_spec002(parser: CommandParser) -> None:
    report = parser.add_argument_group("report of SPEC-002")
    report.add_argument(
        "--verbose", action="store_true", help="Wait, and print each query as it ends, then totals with bars."
    )
    report.add_argument(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="Wait, and write baseline_YYYYMMDD_HHMMSS.json of each run there; several runs go to DIR/run-N.",
    )
    report.add_argument(
        "--limit",
        type=parse_number,
        metavar="N",
        help=f"How many documents per query these two use (default: {LIMIT}).",
    )
