"""Check judged queries without importing them."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.collections.models import Collection
from apps.datasets.commands import SOURCE_HELP, add_source_arguments, read_source
from apps.datasets.previewing import Preview, preview
from apps.mappings.checking import References, check_references
from apps.operations.commands import UseCaseCommand
from benchbench.decimals import counted
from benchbench.finding import find_named

SHOWN = 20


class Command(UseCaseCommand):
    error_status = 2
    statuses = "0 nothing is wrong; 1 something is; 2 SOURCE cannot be read, or wrong usage."
    help = f"""Check judged queries without importing them: what they count, and what is wrong with them.

{SOURCE_HELP}
It reports judgments stated twice, metadata that contradicts the data, queries that nothing can answer, and references
to documents and sections that are not there: in the documents beside SOURCE, and with --collection in a collection.

  benchbench check_ground_truth ground_truth.json
  benchbench check_ground_truth golden-v1/ --collection memories --json
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_source_arguments(parser)
        parser.add_argument("--collection", metavar="NAME", help="Look the judgments up in this collection, too.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        collection = find_named(Collection, options["collection"]) if options["collection"] else None
        with self.busy("Checking"):
            record = read_source(options)
            previewed = preview(record)
            references = check_references(record, collection) if collection else None
        self.report(
            facts_of(previewed, references), "\n".join(lines_of(previewed, references)), as_json=options["json"]
        )
        wrong = len(previewed.warnings) + (len(references.dangling) if references else 0)
        if wrong or previewed.dangling:
            raise CommandError(f"{counted(wrong, 'thing')} to look at.", returncode=1)


def facts_of(previewed: Preview, references: References | None) -> dict[str, Any]:
    facts = previewed.facts()
    if references:
        facts["references"] = asdict(references)
    return facts


def lines_of(previewed: Preview, references: References | None) -> Iterator[str]:
    beside = "" if previewed.dangling is None else f", {counted(previewed.dangling, 'dangling reference')}"
    yield (
        f"{previewed.name} ({previewed.format}): {counted(previewed.queries, 'query')}, "
        f"{counted(previewed.judgments, 'judgment')}, {counted(previewed.duplicates, 'duplicate')}{beside}."
    )
    grades = ", ".join(f"{count:,} of grade {grade}" for grade, count in previewed.grades.items())
    yield f"Judgments by grade: {grades or 'none'}."
    yield from previewed.warnings
    if references:
        dangling = references.dangling
        checked = counted(references.checked, "judgment")
        yield f"{checked} looked up in the collection, {counted(len(dangling), 'dangling reference')}."
        yield from (f"  {lost.query_key}: {lost.reason}" for lost in dangling[:SHOWN])
        if len(dangling) > SHOWN:
            yield f"  and {len(dangling) - SHOWN:,} more (--json has all)."
