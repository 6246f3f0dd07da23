"""Import rankings that were made elsewhere as runs, and measure them."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.datasets.models import Dataset
from apps.datasets.versions import find_version
from apps.execution.defining.matrix_options import add_exclude_self_argument, add_weighting_argument
from apps.experiments.external.importing import NewBenchmark, import_runs
from apps.operations.commands import UseCaseCommand
from apps.records.models import Benchmark
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from benchbench.files.runs import FORMATS
from benchbench.ir.planning.axes.kinds import parse_integers
from benchbench.names import find_named
from benchbench.reading.calls import split_calls


class Command(UseCaseCommand):
    help = """Import rankings made elsewhere, one run per file, and measure them against a dataset.

FILE is a TREC run (lines `qid Q0 docno rank score tag`), a table with columns query, document, and rank or score, JSON
of scores by query and document, a Flowbaby run (JSON with run_id and entries) or a Quepid snapshot (JSON with docs and
queries, whose texts are the keys), recognised by its content; it may be a .gz. No collection is needed: judgments and
runs name documents by id.

Imported runs work like any other: compare, gate, pin as a baseline, export, or inspect them query by query.
Documents are ranked as by `benchbench score`: by score as float32, then by document id, both descending. The rank
column of a TREC run is not read. A judged query that a file lacks counts as 0, as with trec_eval -c. A file that ranks
a document twice for a query is refused, with its line. All files are imported, or none.

  benchbench import_run bm25.run dense.run.gz --dataset scifact --name "Systems of spring"
  benchbench import_run reranked.run --dataset scifact --benchmark "Systems of spring"
  benchbench import_run run.json --dataset golden-v1 --order-by score --measures "Success@5, ERR@10" --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "files", nargs="+", type=Path, metavar="FILE", help="TREC, table, Flowbaby, Quepid; .gz too."
        )
        parser.add_argument("--dataset", required=True, metavar="NAME", help="Name or id of the judged queries.")
        parser.add_argument(
            "--dataset-version",
            type=int,
            metavar="N",
            help="Version of the dataset (default: the newest frozen version).",
        )
        parser.add_argument("--benchmark", metavar="NAME", help="Add to this benchmark of external runs (name or id).")
        parser.add_argument("--name", default="", help="Name of the new benchmark. Without one, the first run's.")
        parser.add_argument("--format", choices=list(FORMATS), default="", help="Default: detected from FILE.")
        parser.add_argument(
            "--order-by",
            choices=["rank", "score"],
            help="Order of a Flowbaby run or table whose ranks and scores disagree.",
        )
        parser.add_argument(
            "--measures",
            type=split_calls,
            default=[],
            metavar="M,M",
            help="In addition to nDCG, P, R, RR and AP, such as ERR@10 or Rprec.",
        )
        parser.add_argument("--k", type=parse_cutoffs, default=[], metavar="K,K", help="Cutoffs (default: 5,10,20).")
        parser.add_argument(
            "--empty-queries",
            choices=["zero", "skip"],
            default="zero",
            help="Queries without a relevant judgment count as 0, or not at all (default: zero).",
        )
        add_weighting_argument(parser)
        add_exclude_self_argument(parser)
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        owner, added_to = options["owner"], options["benchmark"]
        dataset = find_named(Dataset, options["dataset"], owner=owner)
        version = options["dataset_version"]
        names = ("name", "measures", "k", "empty_queries", "weighting", "exclude_self", "owner")
        with self.busy("Reading, storing and measuring"):
            imported = import_runs(
                options["files"],
                dataset=dataset,
                version=None if version is None else find_version(dataset, version),
                benchmark=find_named(Benchmark, added_to, owner=owner) if added_to else None,
                new=NewBenchmark(**{name: options[name] for name in names if options[name] is not None}),
                format=options["format"],
                order_by=options["order_by"],
            )
        for _, report in imported.runs:
            for note in report.list_notes():
                self.warn(note)
        facts = asdict(build_results(imported.benchmark)) | {
            "imported": [
                {"run": run.pk, "sha256": run.lineage.file and run.lineage.file.sha256, **asdict(report)}
                for run, report in imported.runs
            ]
        }
        lines = [*(report.sentence for _, report in imported.runs), render_text(imported.benchmark)]
        self.report(facts, "\n".join(lines), as_json=options["json"])


def parse_cutoffs(text: str) -> list[int]:
    try:
        return parse_integers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 10,20") from None
