"""The command `benchbench score`: it measures the rankings of a file."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchbench.busy import busy
from benchbench.errors import BenchbenchError
from benchbench.files import flowbaby_results
from benchbench.files.flowbaby import SPLITS, Dataset, read_dataset
from benchbench.files.flowbaby_results import Provenance, check_selection, list_measures
from benchbench.ir.measures import Measure, MeasureError
from benchbench.ir.measures.spelling import MAX_CUTOFF
from benchbench.ir.profiles import FLOWBABY_1_1, PLAIN, PROFILES, Profile
from benchbench.local_files.placing import make_folder, write_file_pieces
from benchbench.scoring.measuring import (
    Results,
    Scores,
    build_figures,
    encode_grades,
    is_json,
    list_figures,
    read_results,
    read_truth,
    score,
)
from benchbench.timestamps import read_git_sha, timestamp

CUTOFFS = [5, 10, 20]
FILES = ("output", "markdown", "summary")  # options that name a file to write
DESCRIPTION = """\
Measure a file of results by a file of judgments. Needs no database and no server.

Judgments are TREC qrels (qid iter docno rel), BEIR's qrels (tab-separated, with its header), or Flowbaby's qrels.json;
or a Flowbaby dataset, with --dataset. Results are a TREC run (qid Q0 docno rank score tag) or a Flowbaby run.json.
Each may be compressed with gzip, if its name ends in .gz.

Figures are those of trec_eval -c. Results are ordered by score as float32, then by id, both descending; the rank column
is not read. A judged query without results counts as 0; queries without judgments are left out."""
EPILOG = """\
examples:
  benchbench score --qrels qrels.txt --run bm25.run
  benchbench score --qrels qrels/test.tsv --run dense.run.gz -m nDCG@10 R@100 AP --by-query
  benchbench score --dataset golden-v1 --run run.json --output results.json --markdown results.md \\
      --summary summary.json -k 5 10 20 --evaluation-split test

exit status: 0; 1 with an error on stderr if a file cannot be read or measured; 2 for wrong usage, such as a measure
that does not exist."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Score by the `arguments`, and return the exit status."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if fault := _find_misuse(options):
        parser.error(fault)
    try:
        measures = _parse_measures(options)
    except MeasureError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        _score_dataset(options, measures) if options.dataset else _score_files(options, measures)
    except BenchbenchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "benchbench score",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    truth = parser.add_mutually_exclusive_group(required=True)
    truth.add_argument("--qrels", type=Path, metavar="FILE", help="the judgments")
    truth.add_argument("--dataset", type=Path, metavar="DIR", help="a Flowbaby dataset: topics.json, qrels.json")
    parser.add_argument("--run", type=Path, metavar="FILE", required=True, help="the results")
    parser.add_argument(
        "-m",
        "--measure",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="measures, such as nDCG@10 RR AP Judged@10, or ERR@20 of ir_measures; may be repeated",
    )
    parser.add_argument(
        "-k",
        nargs="+",
        type=int,
        metavar="K",
        help="measure recall, precision, AP and nDCG at these cutoffs, and RR (without -m; default: 5 10 20)",
    )
    parser.add_argument(
        "--profile",
        choices=list(PROFILES),
        help="how the values of queries become one figure; plain: each query counts the same (default with "
        "--qrels); flowbaby-1.1: by its number of judgments (default with --dataset); flowbaby-1.0: "
        "the same, but only in its first slice",
    )
    parser.add_argument(
        "--order-by", choices=["rank", "score"], help="order of a run.json whose ranks and scores disagree"
    )
    parser.add_argument("--by-query", action="store_true", help="also show the values of each query")
    parser.add_argument("--json", action="store_true", help="print JSON")
    _add_files(parser.add_argument_group("files of a Flowbaby dataset's results (with --dataset)"))
    return parser


def _add_files(files: argparse._ArgumentGroup) -> None:
    files.add_argument("--output", type=Path, metavar="FILE", help="write results.json")
    files.add_argument("--markdown", type=Path, metavar="FILE", help="write results.md")
    files.add_argument("--summary", type=Path, metavar="FILE", help="write summary.json")
    files.add_argument("--evaluation-split", choices=SPLITS, help="measure only the topics of this split")
    files.add_argument("--selection-split", choices=SPLITS, help="the split that settings were chosen on")
    files.add_argument(
        "--git-sha", metavar="SHA", help="the revision that made the run (default: the revision checked out)"
    )


def _find_misuse(options: argparse.Namespace) -> str:
    """Return what is wrong with options that the parser accepts, or ""."""
    writes = any(getattr(options, name) for name in FILES)
    if not options.dataset and (writes or options.evaluation_split or options.selection_split or options.git_sha):
        return "--output, --markdown, --summary, --git-sha and the splits need --dataset"
    if options.measure and (writes or options.k):
        return "-m cannot be used with -k, or with result files, which have the measures of Flowbaby"
    if options.k and (not 1 <= min(options.k) <= max(options.k) <= MAX_CUTOFF or len(set(options.k)) < len(options.k)):
        return f"-k takes different cutoffs from 1 to {MAX_CUTOFF:,}"
    if options.order_by and not is_json(options.run):
        return "--order-by is only for a Flowbaby run.json: a TREC run is ordered by score"
    return ""


def _score_files(options: argparse.Namespace, measures: Sequence[Measure]) -> None:
    profile = Profile.parse(options.profile or PLAIN.name)
    with busy(sys.stderr, "Measuring"):
        truth = read_truth(options.qrels)
        results = read_results(options.run, truth, order_by=options.order_by or "agree")
        scores = score(truth, results.rankings, measures, profile=profile)
    _warn(options.run, results, scores)
    _present(scores, profile, options)


def _score_dataset(options: argparse.Namespace, measures: Sequence[Measure]) -> None:
    started = time.perf_counter()
    check_selection(options.selection_split)
    profile = Profile.parse(options.profile or FLOWBABY_1_1.name)
    dataset = read_dataset(options.dataset)
    for warning in dataset.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    topics = {topic.key for topic in dataset.topics}
    if options.evaluation_split:
        dataset = dataset.select_split(options.evaluation_split)
    results = read_results(options.run, dataset.qrels, order_by=options.order_by or "agree")
    # A run without entries answers no query, so Flowbaby has no figures for it.
    judged_grades = encode_grades(dataset.qrels) if results.rankings or results.other_queries else {}
    scores = score(judged_grades, results.rankings, measures, profile=profile)
    _warn(options.run, results, scores, other_splits=frozenset(topics - {topic.key for topic in dataset.topics}))
    if any(getattr(options, name) for name in FILES):
        n_judgments = {topic.key: len(dataset.qrels.get(topic.key, {})) for topic in dataset.topics}
        figures = build_figures(scores, {topic.key: topic.slices for topic in dataset.topics}, n_judgments)
        judged = list(n_judgments.values())
        content = flowbaby_results.build_results(figures, profile=profile, cutoffs=options.k or CUTOFFS, judged=judged)
        _write_files(content, _build_provenance(dataset, results.run_id, started, options), options)
        if not options.json:
            return
    _present(scores, profile, options)


def _build_provenance(dataset: Dataset, run_id: str, started: float, options: argparse.Namespace) -> Provenance:
    return Provenance(
        run_id=run_id,
        timestamp=timestamp(datetime.now(UTC)),
        dataset_id=dataset.metadata.dataset_id,
        dataset_version=dataset.metadata.version,
        canonicalization_version=dataset.metadata.canonicalization_version,
        git_sha=options.git_sha or read_git_sha(Path.cwd()),
        selection_split=options.selection_split,
        evaluation_split=dataset.split,
        duration_ms=round(1000 * (time.perf_counter() - started)),
    )


def _write_files(content: Mapping[str, object], about: Provenance, options: argparse.Namespace) -> None:
    """Write the requested files and their folders. Raises OutputError."""
    texts = (
        flowbaby_results.render_json(content),
        flowbaby_results.render_markdown(content),
        flowbaby_results.render_json(flowbaby_results.build_summary(content, about)),
    )
    for name, text in zip(FILES, texts, strict=True):
        if path := getattr(options, name):
            make_folder(path.parent)
            write_file_pieces([text], path, force=True)


def _parse_measures(options: argparse.Namespace) -> list[Measure]:
    if options.measure:
        return list(dict.fromkeys(Measure.read(name) for name in options.measure))
    return list_measures(options.k or CUTOFFS)


def _warn(path: Path, results: Results, scores: Scores, *, other_splits: frozenset[str] = frozenset()) -> None:
    """Report on stderr the queries that count as 0 or not at all, since no figure shows it.

    `other_splits` are the topics of the dataset that the measured split leaves out.
    """
    missing = len(scores.queries) - len(results.rankings)
    if missing > 0:
        print(
            f"Judged queries that {path.name} lacks, counted as 0: {missing} of {len(scores.queries)}.",
            file=sys.stderr,
        )
    if elsewhere := len(other_splits.intersection(results.other_queries)):
        print(f"Queries of {path.name} in other splits, left out: {elsewhere}.", file=sys.stderr)
    if unjudged := len(results.other_queries) - elsewhere:
        print(f"Queries of {path.name} without judgments, left out: {unjudged}.", file=sys.stderr)


def _present(scores: Scores, profile: Profile, options: argparse.Namespace) -> None:
    names = [str(measure) for measure in scores.measures]
    if options.json:
        content: dict[str, object] = {"measures": list_figures(names, scores.means), "mean": profile.mean}
        content["queries"] = len(scores.queries)
        if options.by_query:
            columns = zip(scores.queries, scores.values.T, strict=True)
            content["by_query"] = {query: list_figures(names, column) for query, column in columns}
        print(json.dumps(content, indent=2))
        return
    width = max(map(len, names))
    if options.by_query:
        for query, column in zip(scores.queries, scores.values.T, strict=True):
            for name, value in zip(names, column, strict=True):
                print(f"{name:<{width}}  {query}  {value:.4f}")
    for name, value in zip(names, scores.means, strict=True):
        print(f"{name:<{width}}  {value:.4f}")
    print(f"{'mean':<{width}}  {profile.mean}: {profile.mean.words}")
    print(f"{'queries':<{width}}  {len(scores.queries)}")
