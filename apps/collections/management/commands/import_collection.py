"""Import documents as a collection, or bring an imported one up to date."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.collections.columns import add_column_arguments, list_choices
from apps.collections.folders import describe_skipped
from apps.collections.importing import import_collection
from apps.collections.sources import SourceError, open_catalogue, open_source
from apps.collections.tables import read_columns
from apps.operations.commands import UseCaseCommand
from benchbench.busy import clean_text
from benchbench.catalogue import parse_catalogue_id


class Command(UseCaseCommand):
    help = """Import documents as a collection, or bring an imported collection up to date.

SOURCE is a folder of text files (.txt .md .markdown .html .htm .rst, looked for in its folders too), or a BEIR corpus
(corpus.jsonl or corpus.jsonl.gz, or the directory that holds it), or a table (.csv .tsv .jsonl .ndjson .json) with a
row for each document and columns of ids and texts, or a directory of sectioned documents (*.json, with the text of each
in a .md of the same name). The id of a text file's document is its relative path.

Import the same name again after the documents changed: unchanged ones are recognised and left alone, and missing
ones are removed unless you give --keep-missing.

  benchbench import_collection handbook/ --name handbook --uri-prefix https://intranet/handbook/
  benchbench import_collection scifact/corpus.jsonl --name scifact
  benchbench import_collection products.csv --name products --column text=notes
  benchbench import_collection handbuch/ --name handbuch --language german
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", type=Path, metavar="SOURCE", help="Folder of files, or corpus.")
        parser.add_argument("--name", required=True, help="Name of the collection; created if it does not exist.")
        parser.add_argument(
            "--uri-prefix",
            metavar="P",
            help="A file's uri is P followed by its relative path. Without P: file:// and the absolute path.",
        )
        parser.add_argument(
            "--language",
            default="",
            help="Language of the documents by name or code, such as german or de. Default: guessed.",
        )
        add_column_arguments(parser, example="text=notes")
        parser.add_argument("--keep-missing", action="store_true", help="Keep documents that SOURCE lacks.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        id = parse_catalogue_id(options["source"])
        columns = read_columns(list_choices(options))
        if id and columns:
            raise SourceError(f"{options['source']} is not a table: leave --column out.")
        prefix = options["uri_prefix"] or None
        source = open_catalogue(id) if id else open_source(options["source"], uri_prefix=prefix, columns=columns)
        with self.progress("documents", source.total) as progress:
            collection, report = import_collection(
                source,
                name=options["name"],
                owner=options["owner"],
                language=options["language"],
                remove_missing=not options["keep_missing"],
                on_progress=progress,
            )
        if source.skipped:
            self.warn(describe_skipped(source.skipped))
        for note in report.notes:
            self.stderr.write(clean_text(note))
        for warning in report.warnings:
            self.warn(warning)
        facts = {"collection": collection.id, "documents": collection.document_count, **asdict(report)}
        facts["language"] = collection.language
        text = (
            f'Collection "{collection.name}" holds {collection.document_count:,} documents: {report}. '
            f"Language: {collection.language_words}."
        )
        self.report(facts, text, as_json=options["json"])
