"""Delete the vectors that are kept so that no text is encoded twice."""

from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import filesizeformat

from apps.operations.commands import UseCaseCommand
from apps.retrieval.encoders.vector_cache import clear_cache
from apps.retrieval.models import VectorSpace
from benchbench.errors import BenchbenchError


class Command(UseCaseCommand):
    help = """Delete the vectors that are kept so that no text is encoded twice.

Indexes keep theirs. Vectors of queries go only with --queries: stored results were ranked with them, and encoded again
they may differ in their last bits. Imported vectors stay. Token vectors go on this machine alone.

  benchbench clear_cache
  benchbench clear_cache --model sentence-transformers/all-MiniLM-L6-v2 --queries
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", help="Name or path of the model, as its indexes name it; by default every one.")
        parser.add_argument("--queries", action="store_true", help="Vectors of queries too.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        spaces = VectorSpace.objects.all() if options["queries"] else VectorSpace.objects.filter(kind="document")
        if options["model"]:
            names = sorted(set(VectorSpace.objects.values_list("encoder", flat=True)))
            if options["model"] not in names:
                there = ", ".join(filter(None, names)) or "none"
                raise BenchbenchError(f"The cache has no vectors by {options['model']!r}; it has some by: {there}.")
            spaces = spaces.filter(encoder=options["model"])
        with self.busy("Deleting vectors"):
            cleared = clear_cache(spaces)
        self.report(
            {"vectors": cleared.vectors, "bytes": cleared.bytes},
            f"Deleted {cleared.vectors:,} vectors, {filesizeformat(cleared.bytes)}.",
            as_json=options["json"],
        )
