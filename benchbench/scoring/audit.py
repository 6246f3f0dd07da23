"""The command `benchbench audit`: what run files and judgments, or two means, can support."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchbench.busy import busy
from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure, MeasureError
from benchbench.ir.statistics.limits import Support, find_support
from benchbench.reading.strict_json import dump_json
from benchbench.scoring.audit_report import describe_audit, describe_support, render_markdown, render_text
from benchbench.scoring.auditing import Audit, audit
from benchbench.scoring.faults import read_rows
from benchbench.scoring.measuring import read_truth

DESCRIPTION = """\
Audit two or more files of results by a file of judgments: which is better, what the figures can and cannot support,
and what is wrong with the files. Needs no site, no documents and no database.

Files are those of `benchbench score`, and so are the figures; the verdict is that of a leaderboard. With --values and
--queries, two means are audited instead of files."""
EPILOG = """\
examples:
  benchbench audit bm25.run dense.run --qrels qrels.txt
  benchbench audit old.run new.run.gz --qrels qrels/test.tsv -m nDCG@10 R@100 --baseline old.run --format markdown
  benchbench audit --values 0.71 0.69 --queries 50

exit status: 0; 1 with an error on stderr if a file cannot be read or compared; 2 for wrong usage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit by the `arguments`, and return the exit status."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if bool(options.values) == bool(options.runs) or bool(options.values) != (options.queries is not None):
        parser.error("give run files and --qrels, or --values and --queries")
    if options.runs and not options.qrels:
        parser.error("run files need --qrels, the judgments")
    try:
        measures = list(dict.fromkeys(map(Measure.read, options.measure or ["nDCG@10"])))
    except MeasureError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        result = find_support(tuple(options.values), options.queries) if options.values else _audit(options, measures)
    except BenchbenchError as error:
        print(error, file=sys.stderr)
        return 1
    if options.format == "json":
        print(dump_json(asdict(result), indent=2))
        return 0
    sections = describe_support(result) if isinstance(result, Support) else describe_audit(result)
    print(render_markdown(sections) if options.format == "markdown" else render_text(sections))
    return 0


def _audit(options: argparse.Namespace, measures: Sequence[Measure]) -> Audit:
    with busy(sys.stderr, "Auditing"):
        truth, runs = read_truth(options.qrels), [read_rows(path) for path in options.runs]
        baseline = options.baseline and Path(options.baseline).name
        file, top_grade = options.qrels.name, options.top_grade
        return audit(truth, runs, measures, file=file, baseline=baseline, top_grade=top_grade)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "benchbench audit",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="the results, a file for each run")
    parser.add_argument("--qrels", type=Path, metavar="FILE", help="the judgments")
    parser.add_argument(
        *("-m", "--measure"),
        nargs="+",
        action="extend",
        metavar="NAME",
        help="measures, of which the first decides (default: nDCG@10)",
    )
    parser.add_argument("--baseline", metavar="RUN", help="compare with this run alone (default: all pairs)")
    parser.add_argument(
        "--top-grade", type=int, metavar="N", help="the highest grade of the scale (default: that given)"
    )
    parser.add_argument("--values", nargs=2, type=float, metavar="MEAN", help="two means instead of files")
    parser.add_argument("--queries", type=int, metavar="N", help="the number of their queries")
    parser.add_argument(
        "--format", choices=["text", "json", "markdown"], default="text", help="how to print it (default: text)"
    )
    return parser
