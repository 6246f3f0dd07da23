"""Import a BEIR directory: documents, judged queries, their mapping, an index."""

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

from django.core.management.base import CommandParser

from apps.mappings.beir import BeirImport, Indexed, import_beir
from apps.mappings.resolving import build_facts, describe
from apps.operations.commands import UseCaseCommand
from apps.operations.working import OperationFailedError, wait
from benchbench.decimals import counted
from benchbench.reading.strict_json import attributes


class Command(UseCaseCommand):
    help = """Import a BEIR directory: its documents, the judged queries of a split, their mapping, and an index.

DIR holds corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv (the first two may be compressed as .gz). Collection, dataset,
mapping and index are all called NAME. Each chunk of the index is a whole document, title and text. It is searched by
words and by vectors: of the default model, of --model, or from a file.

Running it again with the same input is harmless: existing data is recognised, and an interrupted index is
completed.

  benchbench import_beir scifact/ --name scifact
  benchbench import_beir scifact/ --name scifact --vectors minilm.npz --vectors-model all-MiniLM-L6-v2
  benchbench run_benchmark scifact --wait
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", help="The BEIR directory, or ir_datasets:ID.")
        parser.add_argument("--name", required=True, help="Name of everything that is created.")
        parser.add_argument("--split", default="", help="Split whose judgments to import (default: test).")
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument(
            "--vectors",
            type=Path,
            metavar="FILE.npz",
            help="Vectors made elsewhere: document_ids, document_vectors, query_ids, query_vectors, optionally model "
            "and revision (default: the documents are encoded here).",
        )
        ways.add_argument("--no-vectors", action="store_true", help="Search by words only.")
        ways.add_argument(
            "--model",
            metavar="NAME",
            help="Name or path of the model that encodes (default: BENCHBENCH_DEFAULT_MODEL).",
        )
        parser.add_argument(
            "--vectors-model",
            metavar="NAME",
            help="Name or path of the model that made --vectors, if the file does not name it. With a model, queries "
            "that the file lacks can be encoded, and late interaction can rerank.",
        )
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        if options["vectors_model"] and not options["vectors"]:
            raise self.misuse("--vectors-model goes with --vectors; the model that encodes here is --model.")
        with self.progress("documents read") as progress:
            result = import_beir(
                options["directory"],
                name=options["name"],
                split=options["split"],
                vectors=options["vectors"],
                model=options["vectors_model"] or options["model"],
                lexical_only=options["no_vectors"],
                owner=options["owner"],
                on_progress=progress,
            )
        for warning in result.queries.warnings:
            self.warn(warning)
        self.wait_for(result.indexed)
        self.report(_build_facts(result), _render_text(result), as_json=options["json"])

    def wait_for(self, indexed: Indexed) -> None:
        if indexed.operation is None:
            return
        try:
            with self.progress("documents indexed") as progress:
                wait(indexed.operation, on_progress=progress.show_documents)
        except OperationFailedError as error:
            raise OperationFailedError(
                f"Documents, queries and mapping are imported, but the index failed: {error} "
                "Run the command again to continue."
            ) from error
        indexed.index.refresh_from_db()


def _build_facts(result: BeirImport) -> dict[str, object]:
    index = result.indexed.index
    vectors = result.indexed.vectors
    return {
        "collection": {
            "id": result.collection.pk,
            "documents": result.collection.document_count,
            **asdict(result.documents),
        },
        "dataset": {"id": result.version.dataset_id, "version": result.version.number, **asdict(result.queries)},
        "mapping": build_facts(result.mapping),
        "index": {
            **attributes(index, "id", "version", "status", "encoder", "stats"),
            "reused": result.indexed.reused,
            "vectors": asdict(vectors) if vectors else None,
        },
    }


def _render_text(result: BeirImport) -> str:
    index, queries, vectors = result.indexed.index, result.queries, result.indexed.vectors
    documents = counted(result.collection.document_count, "document")
    judged = f"{counted(queries.queries, 'query')}, {counted(queries.judgments, 'judgment')}"
    lines = [
        f'Collection "{result.collection}" holds {documents}: {result.documents}.',
        f"Dataset {result.version} ({queries.outcome}): {judged}.",
        describe(result.mapping),
        f'Index "{index}" is {index.status}{" as it was" if result.indexed.reused else ""}: '
        f"{index.stats['num_chunks']:,} chunks, {index.stats['num_vectors']:,} vectors.",
    ]
    if vectors and vectors.missing_queries:
        lines.append(f"Queries without a vector in the file: {vectors.missing_queries:,}.")
    lines.append(f"Next: manage.py run_benchmark {quote(result.mapping.name)} --wait")
    return "\n".join(lines)
