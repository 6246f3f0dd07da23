"""Open a judging round over runs of a benchmark: what they returned and nobody judged."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.finding import find_run
from apps.benchmarks.models import Benchmark, Run
from apps.judging.errors import RoundError
from apps.judging.leading import find_judges
from apps.judging.models import Round
from apps.judging.opening import RoundOptions, open_round
from apps.operations.commands import UseCaseCommand
from benchbench.names import find_named
from benchbench.reading.strict_json import read_text, read_value

USUAL = RoundOptions(name="")


class Command(UseCaseCommand):
    help = """Open a judging round: the pairs of a query and a document that runs returned and nobody judged.

Judges grade them by the page of the round, the API or `grade_items`; `round_state` says when the question is settled;
`close_round` makes the next version of the dataset of them (docs/judging.md).

  benchbench open_round nightly --judge ada --judge grace --overlap 0.2
  benchbench open_round nightly --run 1 --run 3 --order depth --depth 10 --judge ada --owner ada
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", help="Name (or id) of the benchmark.")
        parser.add_argument(
            "--run", type=int, action="append", metavar="N", help="Its run N; repeat it (default: all that completed)."
        )
        parser.add_argument(
            "--judge", action="append", metavar="USER", help="Who grades; repeat it (default: the owner)."
        )
        parser.add_argument("--name", help="Name of the round (default: that of the benchmark).")
        parser.add_argument(
            "--order", choices=Round.Order.values, default=USUAL.order, help="What comes first (default: decisive)."
        )
        parser.add_argument("--measure", default="", help="What is settled (default: nDCG at its primary k).")
        parser.add_argument("--depth", type=int, help="Documents of each ranking (default: the cutoff of the measure).")
        parser.add_argument("--budget", type=int, help="Items at most (default: all).")
        parser.add_argument(
            "--uniform-share", type=float, default=USUAL.uniform_share, help="Drawn uniformly (default: %(default)s)."
        )
        parser.add_argument("--seed", type=int, default=USUAL.seed, help="Of what is drawn (default: 42).")
        parser.add_argument(
            "--overlap", type=float, default=USUAL.overlap, help="Share that several grade (default: 0)."
        )
        parser.add_argument("--overlap-judges", type=int, default=USUAL.overlap_judges, help="How many (default: 2).")
        parser.add_argument("--not-blind", action="store_true", help="Judges see others' grades of what they graded.")
        parser.add_argument("--scale", type=Path, metavar="FILE", help="JSON: a list of grade, name, description.")
        parser.add_argument("--guidelines", type=Path, metavar="FILE", help="Markdown for the judges.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        benchmark = find_named(Benchmark, options["benchmark"])
        completed = benchmark.runs.filter(status=Run.Status.COMPLETED).order_by("run_order")
        runs = [find_run(benchmark, order) for order in options["run"]] if options["run"] else list(completed)
        same = ("order", "measure", "depth", "budget", "uniform_share", "seed", "overlap", "overlap_judges")
        choices = RoundOptions(
            name=options["name"] or benchmark.name,
            blind=not options["not_blind"],
            scale=read_scale_file(options["scale"]) if options["scale"] else (),
            guidelines=read_text(options["guidelines"]) if options["guidelines"] else "",
            **{name: options[name] for name in same},
        )
        judges = find_judges(options["judge"] or [])
        with self.busy("Reading the rankings"):
            opened = open_round(runs, choices, judges=judges, owner=options["owner"])
        facts = {"id": str(opened.pk), "name": opened.name, "items": opened.item_count, "pool": opened.pool_size}
        text = f'Opened the round "{opened}" ({opened.pk}): {opened.item_count:,} items to grade.'
        self.report(facts, text, as_json=options["json"])


def read_scale_file(path: Path) -> list[Any]:
    scale = read_value(path)
    if not isinstance(scale, list) or not all(isinstance(entry, dict) for entry in scale):
        raise RoundError(f"{path} must hold a list of objects with grade, name and description.", field="scale")
    return scale
