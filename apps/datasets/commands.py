"""Sources of judged queries on the command line: how one is named, and reading it."""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.readers import read_dataset
from apps.datasets.readers.catalogue import read_catalogue
from apps.datasets.readers.formats import DIRECTORIES, FILES, FORMATS
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.catalogue import catalogue_id


def _listed(name: str, text: str) -> str:
    return fill(text, 120, initial_indent=f"  {name:<13}", subsequent_indent=" " * 15)


SOURCE_HELP = f"""SOURCE is one of these, recognised by its content:

{_listed("a file", "; ".join([FILES, "TREC judgments (with --topics)"]))}
{_listed("a directory", DIRECTORIES)}
  a zip of either; any file may be a .gz
  an id        ir_datasets:beir/scifact/test: a public collection of the library ir_datasets, which downloads it
"""


def add_source_arguments(parser: CommandParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="File, directory or zip.")
    parser.add_argument("--format", choices=sorted(FORMATS), default="", help="Default: detected from SOURCE.")
    parser.add_argument(
        "--split", default="", help="Split of a BEIR directory (test without it), or of a Flowbaby one (all)."
    )
    parser.add_argument("--topics", type=Path, metavar="FILE", help="The topics that a file of TREC judges.")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        type=column,
        metavar="FIELD=COLUMN",
        help="Which column of a table holds a field, where their names differ; repeat it for each.",
    )
    parser.add_argument(
        "--ignore-column",
        action="append",
        default=[],
        metavar="COLUMN",
        help="A column of a table that holds no field and is left out; repeat it for each.",
    )


def read_source(options: Mapping[str, Any]) -> DatasetRecord:
    """Return the dataset that the options of `add_source_arguments` name."""
    if id := catalogue_id(options["source"]):
        given = [
            name.replace("_", "-") for name in ("format", "split", "topics", "column", "ignore_column") if options[name]
        ]
        if given:
            raise DatasetError(f"{options['source']} has no {given[0]}: leave --{given[0]} out.", field=given[0])
        return read_catalogue(id)
    return read_dataset(
        options["source"],
        format=options["format"],
        split=options["split"],
        topics=options["topics"],
        columns=dict(options["column"]),
        ignore=options["ignore_column"],
    )


def column(text: str) -> tuple[str, str]:
    field, separator, name = text.partition("=")
    if not separator or not name:
        raise ArgumentTypeError(f"{text!r} is not FIELD=COLUMN, such as query_text=question")
    return field, name
