"""manage.py import_dataset"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.importing import import_dataset
from apps.datasets.readers import READERS, read_dataset
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """Import judged queries as a dataset, frozen as a numbered version.

SOURCE is a file of BenchBench JSON (schema 1.0), or a BEIR directory (queries.jsonl, qrels/SPLIT.tsv).

A frozen version never changes. Importing equal content again changes nothing; other content under the same name needs
a new version label, which JSON states as metadata.version and --label gives to any format.

  manage.py import_dataset questions.json --name support
  manage.py import_dataset scifact/ --name scifact-train --split train
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, metavar="SOURCE", help="JSON file, or BEIR directory.")
        parser.add_argument("--name", help="Name of the dataset. Without one, the name that SOURCE states.")
        parser.add_argument("--format", choices=sorted(READERS), default="", help="Told from SOURCE without it.")
        parser.add_argument("--split", default="", help="Split of a BEIR directory: test without it.")
        parser.add_argument("--label", default="", metavar="VERSION", help="The version that this content is.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        record = read_dataset(options["source"], format=options["format"], split=options["split"])
        if options["label"]:
            record = replace(record, label=options["label"])
        imported = import_dataset(record, name=options["name"], owner=options["owner"])
        version, report = imported.version, imported.report
        for warning in report.warnings:
            self.warn(warning)
        facts = {"dataset": version.dataset_id, "version": version.number, **report.facts()}
        text = (
            f"{version} ({report.outcome}): {report.queries:,} queries, {report.judgments:,} judgments, "
            f"{report.duplicates:,} duplicates."
        )
        self.report(facts, text, as_json=options["json"])
