"""Import a sample of a log of queries, weighted by demand, as the draft of a dataset."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.formats.query_log import DEFAULT_SAMPLE, read_log
from apps.datasets.importing import import_dataset
from apps.datasets.management.commands.import_dataset import parse_column
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted
from benchbench.files.query_log import LONGEST


class Command(UseCaseCommand):
    help = """Import a sample of a log of queries, weighted by demand, as the draft of a dataset.

SOURCE is CSV, TSV or JSON Lines with the columns text (or query) and count, or has a line for each search; .gz too.

Texts are grouped after Unicode NFKC, case folding and joining white space; the most frequent spelling is searched. By
frequency they are cut into head, torso and tail, a third of the demand each, and drawn from each with probability
proportional to their counts. So the weights sum to the demand of the log, less what the report says is left out.

A column clicks is summed in the metadata. Clicks are not turned into grades.

  benchbench import_query_log searches.csv --name shop
  benchbench import_query_log searches.tsv --column text=term --column count=n --sample 50,100,200 --seed 7
  benchbench import_query_log raw.txt.gz --least-count 5 --sample "top 1000"
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, metavar="SOURCE", help="CSV, TSV, JSON Lines, or lines.")
        parser.add_argument("--name", help="Name of the new dataset (default: that of SOURCE).")
        parser.add_argument(
            "--sample",
            default=DEFAULT_SAMPLE,
            metavar="N|N,N,N|all|top N",
            help=f"Queries of each stratum, or of head, torso and tail (default: {DEFAULT_SAMPLE}); or all; or the "
            "most frequent.",
        )
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="Seed of the draw (default: 0).")
        parser.add_argument(
            "--least-count",
            type=int,
            default=1,
            metavar="N",
            help="Leave out queries with fewer searches (default: 1).",
        )
        parser.add_argument(
            "--longest",
            type=int,
            default=LONGEST,
            metavar="N",
            help=f"Leave out longer queries, in characters (default: {LONGEST}).",
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            type=parse_column,
            metavar="FIELD=COLUMN",
            help="The column of text, count or clicks, if its name differs; repeat it for each.",
        )
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        with self.busy("Importing"):
            names = ("sample", "seed", "least_count", "longest")
            record = read_log(
                options["source"], columns=dict(options["column"]), **{name: options[name] for name in names}
            )
            imported = import_dataset(record, name=options["name"], owner=options["owner"])
        version, report = imported.version, imported.report
        facts = {"dataset": version.dataset_id, "version": version.number, "queries": report.queries}
        text = [*report.warnings, f"{version}: {counted(report.queries, 'query')}. Review the draft, then freeze it."]
        self.report(facts | record.metadata, "\n".join(text), as_json=options["json"])
