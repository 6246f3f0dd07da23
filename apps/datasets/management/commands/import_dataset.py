"""manage.py import_dataset"""

from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.importing import import_dataset
from apps.datasets.readers import FORMATS, read_dataset
from apps.operations.commands import UseCaseCommand


def column(stated: str) -> tuple[str, str]:
    field, separator, name = stated.partition("=")
    if not separator or not name:
        raise ArgumentTypeError(f"{stated!r} is not FIELD=COLUMN, such as query_text=question")
    return field, name


class Command(UseCaseCommand):
    help = """Import judged queries as a dataset, frozen as a numbered version.

SOURCE is, told apart by what it holds:

  a file       BenchBench JSON (schema 1.0), ground_truth.json, module queries (SPEC-001), CSV or JSON Lines,
               TREC judgments (with --topics)
  a directory  BEIR (queries.jsonl, qrels/SPLIT.tsv), Flowbaby (topics.json, qrels.json), ground_truth.json with its
               documents/, TREC judgments and topics
  a zip of either; any file may be a .gz.

A frozen version never changes. Importing equal content again changes nothing; other content under the same name needs
a new version label, which JSON states as metadata.version and --label gives to any format.

  manage.py import_dataset questions.json --name support
  manage.py import_dataset scifact/ --name scifact-train --split train
  manage.py import_dataset qrels.txt --topics topics.xml --name robust
  manage.py import_dataset judged.csv --column query_text=question --column uri=page --column grade=stars
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, metavar="SOURCE", help="File, directory or zip.")
        parser.add_argument("--name", help="Name of the dataset. Without one, the name that SOURCE states.")
        parser.add_argument("--format", choices=sorted(FORMATS), default="", help="Told from SOURCE without it.")
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
        parser.add_argument("--label", default="", metavar="VERSION", help="The version that this content is.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        record = read_dataset(
            options["source"],
            format=options["format"],
            split=options["split"],
            topics=options["topics"],
            columns=dict(options["column"]),
        )
        if options["label"]:
            record = replace(record, label=options["label"])
        imported = import_dataset(record, name=options["name"], owner=options["owner"])
        version, report = imported.version, imported.report
        for warning in report.warnings:
            self.warn(warning)
        facts = {"dataset": version.dataset_id, "version": version.number, **report.facts()}
        dangling = "" if report.dangling is None else f", {report.dangling:,} dangling references"
        text = (
            f"{version} ({report.outcome}): {report.queries:,} queries, {report.judgments:,} judgments, "
            f"{report.duplicates:,} duplicates{dangling}."
        )
        self.report(facts, text, as_json=options["json"])
