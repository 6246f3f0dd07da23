"""Import judged queries as a dataset, frozen as a numbered version."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import fill
from typing import Any

from django.core.management.base import CommandParser

from apps.collections.columns import add_column_arguments, list_choices
from apps.datasets.formats.catalogue import read_catalogue
from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.registry import DIRECTORIES, FILES, FORMATS
from apps.datasets.formats.table import read_columns
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetError, DatasetRecord
from apps.operations.commands import UseCaseCommand
from benchbench.catalogue import parse_catalogue_id
from benchbench.decimals import counted


def _fill_line(name: str, text: str) -> str:
    return fill(text, 120, initial_indent=f"  {name:<13}", subsequent_indent=" " * 15)


READING = ("format", "split", "topics", "grade_factor", "sample", "seed")
SOURCE_HELP = f"""SOURCE is one of these, recognised by its content:

{_fill_line("a file", "; ".join([FILES, "TREC judgments (with --topics)"]))}
{_fill_line("a directory", DIRECTORIES)}
  some files   of such a directory
  a zip of either; any file may be a .gz
  an id        ir_datasets:beir/scifact/test: a public collection of the library ir_datasets, which downloads it
"""


def add_source_arguments(parser: CommandParser) -> None:
    parser.add_argument("source", type=Path, nargs="+", metavar="SOURCE", help="File, directory or zip; or files.")
    parser.add_argument("--format", choices=sorted(FORMATS), default="", help="Default: detected from SOURCE.")
    parser.add_argument(
        "--split", default="", help="Split of a BEIR directory (default: test) or a Flowbaby directory (default: all)."
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="The topics of a file of TREC judgments.")
    add_column_arguments(parser, example="query_text=question")
    for name, text in {
        "--grade-factor": "Multiply the ratings of Quepid, _rank_eval and OpenSearch by N, if they are fractions.",
        "--seed": "Another seed draws another sample of a log.",
    }.items():
        parser.add_argument(name, type=int, default=0, metavar="N", help=text)
    parser.add_argument("--sample", default="", help="Of a log of queries: 100 (default), 50,100,200 or all.")


def read_source(options: Mapping[str, Any]) -> DatasetRecord:
    """Return the dataset that the options of `add_source_arguments` name."""
    source, *more = options["source"]
    if not more and (id := parse_catalogue_id(source)):
        extra = [name.replace("_", "-") for name in (*READING, "column", "ignore_column") if options[name]]
        if extra:
            raise DatasetError(f"{source} has no {extra[0]}: leave --{extra[0]} out.", field=extra[0])
        return read_catalogue(id)
    return read_dataset(
        source if not more else options["source"],
        **read_columns(list_choices(options)),
        **{name: options[name] for name in READING},
    )


class Command(UseCaseCommand):
    help = f"""Import judged queries as a dataset, frozen as a numbered version.

{SOURCE_HELP}
A frozen version never changes. Importing equal content again changes nothing; other content under the same name needs
a new version label, which JSON states as metadata.version and --label gives to any format. Problems are reported.

A log of queries becomes a dataset without judgments, weighted by demand. Its columns are text (or query), count and
perhaps clicks; with --format query-log a file may have a line for each search. By frequency the queries are cut into
head, torso and tail, a third of the demand each, and so many are drawn of each. A weight is the demand that a query
stands for: weights sum to the demand of the log, less what the report says is left out. Clicks are summed and are not
turned into grades.

  benchbench import_dataset questions.json --name support
  benchbench import_dataset scifact/ --name scifact-train --split train
  benchbench import_dataset topics.xml qrels.txt --name robust
  benchbench import_dataset judged.csv --column query_text=question --column uri=page --column grade=stars
  benchbench import_dataset searches.tsv --name shop --column text=term --column count=n --sample 50,100,200 --seed 7
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_source_arguments(parser)
        parser.add_argument("--name", help="Name of the dataset (default: the name in SOURCE).")
        parser.add_argument(
            "--label",
            default="",
            metavar="VERSION",
            help="Label of the version (default: the label in SOURCE).",
        )
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        with self.busy("Importing"):
            record = read_source(options)
            if options["label"]:
                record = replace(record, label=options["label"])
            imported = import_dataset(record, name=options["name"], owner=options["owner"])
        version, report = imported.version, imported.report
        for warning in report.warnings:
            self.warn(warning)
        facts = {"dataset": version.dataset_id, "version": version.number, **asdict(report)}
        dangling = "" if report.dangling is None else f", {counted(report.dangling, 'dangling reference')}"
        text = (
            f"{version} ({report.outcome}): {counted(report.queries, 'query')}, "
            f"{counted(report.judgments, 'judgment')}, "
            f"{counted(report.duplicates, 'duplicate')}{dangling}."
        )
        self.report(facts, text, as_json=options["json"])
