"""Import a sample of a log of queries, weighted by demand, as the draft of a dataset."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.formats.query_log import DEFAULT_SAMPLE, read_log
from apps.datasets.importing import import_dataset
from apps.datasets.management.commands.import_dataset import parse_column
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted

COLUMN = "Column of text, count or clicks, if its name differs; repeat it for each."


class Command(UseCaseCommand):
    help = """Import a sample of a log of queries, weighted by demand, as the draft of a dataset.

SOURCE is CSV, TSV or JSON Lines with the columns text (or query) and count, or has a line for each search; .gz too.
By frequency, the queries are cut into head, torso and tail, a third of the demand each. SAMPLE is a number to draw from
each (100), a number for each of them (50,100,200), all, or the most frequent (top 500). A query's weight is the demand
that it stands for: drawn weights sum to the demand of the log, less what the report says is left out.
A column clicks is summed in the metadata. Clicks are not turned into grades.

  benchbench import_query_log searches.tsv --name shop --column text=term --column count=n --sample 50,100,200 --seed 7
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("source", type=Path, metavar="SOURCE", help="CSV, TSV, JSON Lines, or lines.")
        add("--name", help="Name of the new dataset (default: that of SOURCE).")
        add("--sample", default=DEFAULT_SAMPLE, help=f"How many queries to take (default: {DEFAULT_SAMPLE}).")
        add("--seed", type=int, default=0, metavar="N", help="Seed of the draw (default: 0).")
        add("--least-count", type=int, default=1, metavar="N", help="Leave out rarer queries (default: 1).")
        add("--column", action="append", default=[], type=parse_column, metavar="FIELD=COLUMN", help=COLUMN)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        chosen_options = {name: options[name] for name in ("sample", "seed", "least_count")}
        with self.busy("Importing"):
            record = read_log(options["source"], columns=dict(options["column"]), **chosen_options)
            imported = import_dataset(record, name=options["name"], owner=options["owner"])
        version, report = imported.version, imported.report
        facts = {"dataset": version.dataset_id, "version": version.number, "queries": report.queries}
        text = [*report.warnings, f"{version}: {counted(report.queries, 'query')}. Review the draft, then freeze it."]
        self.report(facts | record.metadata, "\n".join(text), as_json=options["json"])
