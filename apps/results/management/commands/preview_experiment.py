"""Show what run_experiment would do with a file, and do nothing."""

from typing import Any

from django.core.management.base import CommandParser

from apps.execution.defining.matrix_options import add_experiment
from apps.experiments.experiments import plan_experiment
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """List the combinations of an experiment file, and which of them can run here, and do nothing.

  benchbench preview_experiment baseline.yaml --preset quick_test
"""

    def add_arguments(self, parser: CommandParser) -> None:
        add_experiment(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        planned = plan_experiment(options["experiment"], preset=options["preset"])
        self.report(planned.as_dict(), planned.as_text(), as_json=options["json"])
