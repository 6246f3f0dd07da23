"""Make a collection searchable: by words, and with --encoder by vectors too."""

from typing import Any

from django.core.management.base import CommandParser

from apps.collections.models import Collection
from apps.operations.commands import UseCaseCommand
from apps.operations.models import Operation
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.finding import find_named


class Command(UseCaseCommand):
    help = """Make a collection searchable: by words, and with --encoder by vectors too.

A name that the collection has already makes its next version. Without --wait the index is left to a worker of the
queue `gpu`; with it the command returns when the index is ready, and builds it itself where no worker runs.

  benchbench build_index scifact --name minilm --encoder all-MiniLM-L6-v2 --wait
  benchbench build_index handbook --name parts --encoder /models/e5 --size 500 --overlap 50
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("collection", help="Name (or id) of the collection.")
        parser.add_argument("--name", required=True, help="Name of the index: it is part of the label of every run.")
        parser.add_argument(
            "--encoder",
            default="",
            metavar="MODEL",
            help="Name or path of a model (default: none, search by words only). For trying things out, "
            "keyword:apple,pear counts these words and needs no model.",
        )
        parser.add_argument("--size", type=int, metavar="N", help="Characters a chunk (default: whole documents).")
        parser.add_argument(
            "--overlap", type=int, metavar="N", help="Characters that a chunk shares with the next (default: 0)."
        )
        parser.add_argument("--title", action="store_true", help="Put the document's title before each chunk.")
        parser.add_argument("--no-lexical", action="store_true", help="Search by vectors only.")
        parser.add_argument("--wait", action="store_true", help="Return when the index is ready.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        index = create_index(
            find_named(Collection, options["collection"], owner=options["owner"]),
            name=options["name"],
            encoder=options["encoder"],
            chunk_parameters=self.chunk_parameters(options),
            lexical=not options["no_lexical"],
            owner=options["owner"],
        )
        operation = build_index(index)
        if options["wait"]:
            self.wait_for(operation)
            index.refresh_from_db()
        facts = {
            "index": index.pk,
            "version": index.version,
            "operation": operation.pk,
            "status": index.status,
            "stats": index.stats,
        }
        self.report(facts, describe(index), as_json=options["json"])

    def chunk_parameters(self, options: dict[str, Any]) -> dict[str, Any]:
        if options["size"] is not None:
            return {"size": options["size"], "overlap": options["overlap"] or 0, "title": options["title"]}
        if options["overlap"] is not None or options["title"]:
            raise self.misuse(
                "--overlap and --title go with --size: whole documents are not cut, and have their title."
            )
        return {}

    def wait_for(self, operation: Operation) -> None:
        with self.progress("documents") as progress:
            wait(
                operation,
                on_progress=lambda event: progress.count(event, "processed_documents", "total_documents"),
            )


def describe(index: Index) -> str:
    if index.status != Index.Status.READY:
        return f'The index "{index}" is queued; a worker builds it (manage.py worker).'
    stats = index.stats
    return (
        f'The index "{index}" is ready: {stats["num_documents"]:,} documents, {stats["num_chunks"]:,} chunks, '
        f"{stats['num_vectors']:,} vectors, in {stats['duration_sec']:,.1f} s."
    )
