"""Make a collection searchable: by words, and unless --no-vectors by vectors too."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import transaction

from apps.collections.models import Collection
from apps.operations.commands import UseCaseCommand
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.ir.encoding import DEFAULT, PRECISIONS
from benchbench.ir.planning.strategies import ASKING, INPUTS, STRATEGIES
from benchbench.names import find_named
from benchbench.reading.strict_json import attributes


class Command(UseCaseCommand):
    help = """Make a collection searchable: by words, and unless --no-vectors by vectors too.

An existing name makes the next version of that index. Without --wait, a worker of the queue `gpu` builds the index.
With --wait, the command returns when the index is ready, and builds it itself if no worker runs.

  benchbench build_index scifact --name minilm --encoder all-MiniLM-L6-v2 --wait
  benchbench build_index handbook --name words --no-vectors
  benchbench build_index handbook --name parts --encoder /models/e5 --size 500 --overlap 50
  benchbench build_index handbook --name lod --encoder /models/e5 --strategy lod_embed --doc-top-k 3
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("collection", help="Name (or id) of the collection.")
        parser.add_argument("--name", required=True, help="Name of the index: every run label includes it.")
        parser.add_argument(
            "--encoder",
            metavar="MODEL",
            help=(
                "Name or path of the model that encodes (default: BENCHBENCH_DEFAULT_MODEL). "
                "For tests, keyword:apple,pear counts these words and needs no model."
            ),
        )
        for kind in ("query", "document"):
            parser.add_argument(
                f"--{kind}-prompt",
                metavar="TEXT",
                help=f"Text before each {kind} (default: that of the model's configuration).",
            )
        parser.add_argument(
            "--precision",
            choices=PRECISIONS,
            default=DEFAULT.precision,
            help="Of the encoder's products; mixed: products in bfloat16, the rest in float32 (default: float32).",
        )
        parser.add_argument("--no-vectors", action="store_true", help="Build no vectors: search by words only.")
        parser.add_argument(
            "--strategy", choices=list(STRATEGIES), default="flat", help="Retrieval strategy (default: flat)."
        )
        parser.add_argument("--size", type=int, metavar="N", help="Characters per chunk (default: whole documents).")
        parser.add_argument(
            "--overlap", type=int, metavar="N", help="Characters that a chunk shares with the next (default: 0)."
        )
        parser.add_argument("--title", action="store_true", help="Put the document's title before each chunk.")
        parser.add_argument(
            "--by-section", action="store_true", help="Split at sections: no chunk spans two sections of a document."
        )
        self.add_strategy_arguments(parser)
        parser.add_argument("--no-lexical", action="store_true", help="Build no BM25 index.")
        parser.add_argument("--wait", action="store_true", help="Return when the index is ready.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def add_strategy_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--fit-encoder", action="store_true", help="Divide documents and chunks where the encoder stops reading."
        )
        for name, parameter in INPUTS.items():
            kind = {"choices": list(parameter.choices)} if parameter.choices else {"type": int, "metavar": "N"}
            help_text = f"{parameter.help.rstrip('.')} (default: {parameter.default})."
            parser.add_argument(f"--{name.replace('_', '-')}", help=help_text, **kind)
        parser.add_argument(
            "--llm", default="", metavar="MODEL", help=f"{', '.join(ASKING)}: the language model (default: none)."
        )
        parser.add_argument(
            "--llm-server", metavar="NAME", help="Its server, from BENCHBENCH_LLM_SERVERS (default: the first)."
        )
        parser.add_argument("--no-llm-cache", action="store_true", help="Do not cache answers of the model.")

    def act(self, **options: Any) -> None:
        if options["no_vectors"] and options["encoder"]:
            raise self.misuse("--no-vectors encodes nothing: leave out --encoder.")
        encoder = settings.BENCHBENCH_DEFAULT_MODEL if options["encoder"] is None else options["encoder"]
        with transaction.atomic():
            index = create_index(
                find_named(Collection, options["collection"], owner=options["owner"]),
                name=options["name"],
                encoder="" if options["no_vectors"] else encoder,
                **{name: options[name] for name in ("query_prompt", "document_prompt", "precision")},
                strategy=options["strategy"],
                chunk_parameters=self.read_parameters(options),
                lexical=not options["no_lexical"],
                llm=options["llm"],
                llm_parameters=self.read_llm_parameters(options),
                owner=options["owner"],
            )
            operation = build_index(index)
        if options["wait"]:
            with self.progress("documents") as progress:
                wait(operation, on_progress=progress.show_documents)
            index.refresh_from_db()
        facts = {"index": index.pk, **attributes(index, "version", "status", "stats"), "operation": operation.pk}
        self.report(facts, describe(index), as_json=options["json"])

    def read_parameters(self, options: Mapping[str, object]) -> dict[str, object]:
        """Return the strategy's parameters given as options."""
        parameters = {name: options[name] for name in ("size", "overlap", *INPUTS)}
        parameters |= {"title": options["title"] or None, "sections": options["by_section"] or None}
        parameters["fit_encoder"] = options["fit_encoder"] or None
        parameters = {name: value for name, value in parameters.items() if value is not None}
        if options["strategy"] == "flat" and options["size"] is None and parameters.keys() - {"fit_encoder"}:
            raise self.misuse(
                "--overlap, --title and --by-section need --size: whole documents are not split and include their "
                f"title. The other options need --strategy {', '.join(name for name in STRATEGIES if name != 'flat')}."
            )
        return parameters

    def read_llm_parameters(self, options: Mapping[str, object]) -> dict[str, object]:
        parameters = {"provider": options["llm_server"], "cache": False if options["no_llm_cache"] else None}
        return {name: value for name, value in parameters.items() if value is not None}


def describe(index: Index) -> str:
    if index.status != Index.Status.READY:
        return f'The index "{index}" is queued for a worker (manage.py worker).'
    stats = index.stats
    return (
        f'The index "{index}" is ready: {stats["num_documents"]:,} documents, {stats["num_chunks"]:,} chunks, '
        f"{stats['num_vectors']:,} vectors; {stats['duration_sec']:,.1f} s of work."
    )
