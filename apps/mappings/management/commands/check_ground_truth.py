"""Check judged queries without importing them."""

from collections.abc import Iterator
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
            found = preview(record)
            references = check_references(record, collection) if collection else None
        self.report(facts_of(found, references), "\n".join(lines_of(found, references)), as_json=options["json"])
        wrong = len(found.warnings) + (len(references.dangling) if references else 0)
        if wrong or found.dangling:
            raise CommandError(f"{counted(wrong, 'thing')} to look at.", returncode=1)


def facts_of(found: Preview, references: References | None) -> dict[str, Any]:
    facts = found.facts()
    if references:
        facts["references"] = {
            "checked": references.checked,
            "dangling": [{"query_key": key, "reason": reason} for key, reason in references.dangling],
        }
    return facts


def lines_of(found: Preview, references: References | None) -> Iterator[str]:
    beside = "" if found.dangling is None else f", {counted(found.dangling, 'dangling reference')}"
    yield (
        f"{found.name} ({found.format}): {counted(found.queries, 'query')}, {counted(found.judgments, 'judgment')}, "
        f"{counted(found.duplicates, 'duplicate')}{beside}."
    )
    grades = ", ".join(f"{count:,} of grade {grade}" for grade, count in found.grades.items())
    yield f"Judgments by grade: {grades or 'none'}."
    yield from found.warnings
    if references:
        dangling = references.dangling
        checked = counted(references.checked, "judgment")
        yield f"{checked} looked up in the collection, {counted(len(dangling), 'dangling reference')}."
        yield from (f"  {key}: {reason}" for key, reason in dangling[:SHOWN])
        if len(dangling) > SHOWN:
            yield f"  and {len(dangling) - SHOWN:,} more (--json has all)."
