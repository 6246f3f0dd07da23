"""Delete what the site's policies of retention keep no longer."""

from collections import Counter
from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import filesizeformat

from apps.operations.commands import UseCaseCommand
from apps.results.retention.pruning import list_due, prune_for
from apps.results.retention.sizes import load_sizes
from benchbench.decimals import counted


class Command(UseCaseCommand):
    help = """Delete what the policies of retention keep no longer: the settings BENCHBENCH_KEEP_…_DAYS.

A worker does the same every hour. The bytes are estimates.

  benchbench prune --dry-run
  benchbench prune
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Show what would be deleted, and delete nothing.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        due = list_due(load_sizes())
        deleted = Counter[str]() if options["dry_run"] else prune_for()
        facts, lines = {}, []
        for policy, _, number, size in due:
            facts[policy.name] = {
                "days": policy.days,
                "due": number,
                "bytes": size,
                "deleted": deleted[policy.name],
            }
            outcome = f"would delete {number:,}" if options["dry_run"] else f"deleted {deleted[policy.name]:,}"
            line = f"{outcome}, older than {counted(policy.days, 'day')}, about {filesizeformat(size)}"
            lines.append(f"{policy.name}: {line if policy.days else f'kept, since {policy.setting} is 0'}")
        self.report(facts, "\n".join(lines), as_json=options["json"])
