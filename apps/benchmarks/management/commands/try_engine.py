"""Ask a declared search engine once, and show request, answer and hits."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.engines.declarations import load_engine
from apps.execution.running.engine_trials import ask_engine, build_facts, render_trial
from apps.operations.commands import UseCaseCommand


class Command(UseCaseCommand):
    help = """Ask a declared search engine once (docs/engines.md): from a curl line to a declaration that works.

Prints the request without its secret, the hits, their total and the time; or the path that failed, with the part of the
answer on which it failed. Nothing is stored.

  benchbench try_engine shop "red boots"
  benchbench try_engine shop "red boots" --param boost=2 --depth 3
  benchbench try_engine shop "red boots" --raw
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("alias", help="Alias of the engine in the file BENCHBENCH_ENGINES.")
        parser.add_argument("query", help="Text of the query.")
        parser.add_argument(
            "--param",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="A parameter of the engine; repeatable. Others have their default.",
        )
        parser.add_argument("--depth", type=int, default=10, metavar="N", help="Hits to ask for (default: 10).")
        parser.add_argument("--raw", action="store_true", help="Also print the answer as it came.")
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        engine = load_engine(options["alias"])
        if options["depth"] < 1:
            raise self.misuse("--depth must be at fewest 1.")
        parameters = dict(self.read_parameter(text) for text in options["param"])
        trial = ask_engine(engine, options["query"], parameters, options["depth"])
        text = render_trial(trial, engine, options["depth"], raw=options["raw"])
        self.report(build_facts(trial, options["raw"]), text, as_json=options["json"])
        if trial.error is not None:
            raise CommandError(trial.error.message, returncode=self.error_status)

    def read_parameter(self, text: str) -> tuple[str, object]:
        name, separator, value = text.partition("=")
        if not separator:
            raise self.misuse(f"--param must be NAME=VALUE, not {text!r}.")
        try:
            return name, json.loads(value)
        except ValueError:
            return name, value
