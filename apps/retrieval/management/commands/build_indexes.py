"""Make a collection searchable in several ways at once: each strategy by each encoder."""

from typing import Any

from django.core.management.base import CommandParser

from apps.collections.models import Collection
from apps.operations.commands import UseCaseCommand
from apps.operations.working import wait
from apps.retrieval.grids import (
    ENCODER_EXAMPLE,
    EXAMPLE,
    Build,
    Grid,
    make_grid,
    plan_grid,
    read_encoder,
    read_strategy,
)
from benchbench.names import find_named


class Command(UseCaseCommand):
    help = f"""Make a collection searchable in several ways at once: each strategy by each encoder.

Existing indexes with the same parts are reused. Each new index is named after its parts and built by its own operation.
--dry-run lists them. Without --wait, workers of the queue `gpu` build them. With --wait, the command returns when all
are ready, and builds them itself if no worker runs.

  benchbench build_indexes handbook --strategy "{EXAMPLE}" --strategy lod_embed --encoder /models/e5
  benchbench build_indexes scifact --strategy flat --encoder all-MiniLM-L6-v2 --encoder "" --dry-run
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("collection", help="Name (or id) of the collection.")
        parser.add_argument(
            "--strategy",
            action="append",
            required=True,
            metavar="S",
            help=f'A strategy with its parameters, such as "{EXAMPLE}" or "lod_embed(doc_top_k=3)"; repeatable.',
        )
        parser.add_argument(
            "--encoder",
            action="append",
            required=True,
            metavar="MODEL",
            help=f"Name or path of a model, with prompts and precision where they differ: '{ENCODER_EXAMPLE}'; "
            '"" for lexical search only; repeatable.',
        )
        parser.add_argument(
            "--llm",
            action="append",
            default=[],
            metavar="MODEL",
            help="Language model, for strategies that use one; repeatable.",
        )
        parser.add_argument(
            "--llm-server", metavar="NAME", help="Its server, from BENCHBENCH_LLM_SERVERS (default: the first)."
        )
        parser.add_argument("--no-lexical", action="store_true", help="Build no BM25 indexes.")
        parser.add_argument("--dry-run", action="store_true", help="List existing and missing indexes, and build none.")
        parser.add_argument("--wait", action="store_true", help="Return when all are ready.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        collection = find_named(Collection, options["collection"], owner=options["owner"])
        llm_parameters = {"provider": options["llm_server"]} if options["llm_server"] else {}
        grid = Grid(
            strategies=[read_strategy(text) for text in options["strategy"]],
            encoders=[read_encoder(text) for text in options["encoder"]],
            llms=[(llm, llm_parameters) for llm in options["llm"]],
            lexical=not options["no_lexical"],
        )
        if options["dry_run"]:
            cells = plan_grid(collection, grid, owner=options["owner"])
            text = "\n".join(f"{cell.name}: {cell.missing or cell.state}" for cell in cells)
            self.report({"indexes": [cell.as_dict() for cell in cells]}, text, as_json=options["json"])
            return
        builds = make_grid(collection, grid, owner=options["owner"])
        for operation in [item.operation for item in builds if item.operation and options["wait"]]:
            with self.progress("documents") as progress:
                wait(operation, on_progress=progress.show_documents)
        for item in builds:
            item.index.refresh_from_db()
        facts = [
            {"name": item.index.name, "index": item.index.pk, "status": item.index.status, "stats": item.index.stats}
            for item in builds
        ]
        self.report({"indexes": facts}, "\n".join(map(describe_build, builds)), as_json=options["json"])


def describe_build(build: Build) -> str:
    suffix = ", existed" if build.cell.state == "ready" else ""
    return f"{build.index}: {build.index.status}{suffix}"
