"""Import judged queries as a dataset, frozen as a numbered version."""

from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.commands import SOURCE_HELP, add_source_arguments, read_source
from apps.datasets.importing import import_dataset
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted


class Command(UseCaseCommand):
    help = f"""Import judged queries as a dataset, frozen as a numbered version.

{SOURCE_HELP}
A frozen version never changes. Importing equal content again changes nothing; other content under the same name needs
a new version label, which JSON states as metadata.version and --label gives to any format. Problems are reported.

  benchbench import_dataset questions.json --name support
  benchbench import_dataset scifact/ --name scifact-train --split train
  benchbench import_dataset qrels.txt --topics topics.xml --name robust
  benchbench import_dataset judged.csv --column query_text=question --column uri=page --column grade=stars
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_source_arguments(parser)
        parser.add_argument("--name", help="Name of the dataset. Without one, the name that SOURCE states.")
        parser.add_argument(
            "--label",
            default="",
            metavar="VERSION",
            help="The version that this content is (default: what SOURCE states).",
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
        facts = {"dataset": version.dataset_id, "version": version.number, **report.facts()}
        dangling = "" if report.dangling is None else f", {counted(report.dangling, 'dangling reference')}"
        text = (
            f"{version} ({report.outcome}): {counted(report.queries, 'query')}, "
            f"{counted(report.judgments, 'judgment')}, "
            f"{counted(report.duplicates, 'duplicate')}{dangling}."
        )
        self.report(facts, text, as_json=options["json"])
