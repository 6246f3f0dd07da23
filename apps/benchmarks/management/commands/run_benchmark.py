"""Run a matrix of search configurations over a mapping."""

import argparse
import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.launching import launch
from apps.benchmarks.measures import names_in
from apps.benchmarks.models import Benchmark
from apps.benchmarks.previewing import preview
from apps.benchmarks.reporting import facts_of, preview_text, text_of
from apps.benchmarks.reproducing import benchmark_from, read_manifest
from apps.benchmarks.verifying import verify
from apps.mappings.finding import find_mapping
from apps.mappings.models import Mapping
from apps.operations.commands import UseCaseCommand
from apps.operations.models import Operation, Status
from apps.operations.working import OperationFailedError, wait
from benchbench.errors import BenchbenchError
from benchbench.ir.ann import split_settings
from benchbench.ir.matrix import MatrixError

OPTIONS = {  # by key of the matrix
    "indexes": "--indexes",
    "search_modes": "--modes",
    "use_reranker": "--rerank",
    "rerankers": "--reranker",
    "rerank_depths": "--rerank-depth",
    "top_k_values": "--top-k",
    "candidates": "--candidates",
    "ann": "--ann",
    "lexical": "--lexical",
    "fusion": "--fusion",
    "weights": "--weights",
    "rrf_k_values": "--rrf-k",
    "score_thresholds": "--thresholds",
    "k_values_for_metrics": "--k",
    "primary_k": "--primary-k",
}


def words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def whole_numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 10,20") from None


def thresholds(text: str) -> list[float | None]:
    try:
        return [None if part.lower() == "none" else float(part) for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers or none, such as none,0.5") from None


def weights(text: str) -> list[list[float]]:
    try:
        return [[float(weight) for weight in part.split(":")] for part in words(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of pairs of numbers such as 0.7:0.3") from None


class Command(UseCaseCommand):
    help = (
        "Run a matrix of search configurations over a mapping and measure every one of them. Each option that takes a "
        "list multiplies the matrix; an option that a mode does not use does not. Example: "
        "run_benchmark scifact --modes dense,sparse,hybrid --rrf-k 20,60 --wait"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mapping", nargs="?", help="Name (or id) of the mapping to run over.")
        parser.add_argument(
            "--manifest",
            metavar="FILE",
            help="Run what this manifest describes, wait, and hold it against what the manifest says came of it: exit "
            "status 1 where a value differs. Only --name, --owner and --json go with it.",
        )
        parser.add_argument("--name", help="Name of the benchmark; the mapping's name and the time by default.")
        matrix = parser.add_argument_group("matrix")
        matrix.add_argument("--indexes", type=words, help="Names of indexes; by default the collection's newest.")
        matrix.add_argument("--modes", type=words, help="dense, sparse, hybrid; by default all that the index can.")
        matrix.add_argument("--rerank", choices=["on", "off", "both"], default="off")
        matrix.add_argument("--reranker", metavar="M", help="A cross-encoder; by default late-interaction.")
        matrix.add_argument("--top-k", type=whole_numbers, metavar="K,K", help="Chunks that a run returns.")
        matrix.add_argument(
            "--candidates", type=whole_numbers, metavar="C,C", help="Depth of the first stage, in chunks."
        )
        matrix.add_argument("--rerank-depth", type=whole_numbers, metavar="D,D", help="Chunks that are reranked.")
        matrix.add_argument(
            "--ann", type=split_settings, metavar="A,A", help='Dense search, such as "exact,hnsw(ef_search=100)".'
        )
        matrix.add_argument("--lexical", type=words, metavar="E,E", help="Lexical engines: bm25, fts.")
        matrix.add_argument("--fusion", type=words, metavar="F,F", help="Of hybrid search: rrf, weighted.")
        matrix.add_argument(
            "--weights", type=weights, metavar="D:L,D:L", help="Of dense and lexical in weighted fusion, as in 0.7:0.3."
        )
        matrix.add_argument("--rrf-k", type=whole_numbers, metavar="K,K", help="Constants of reciprocal rank fusion.")
        matrix.add_argument("--thresholds", type=thresholds, metavar="T,T", help="Least scores in [0, 1], or none.")
        measures = parser.add_argument_group("measures")
        measures.add_argument("--k", type=whole_numbers, metavar="K,K", help="Cutoffs of the measures.")
        measures.add_argument("--primary-k", type=int, metavar="K", help="The cutoff that decides the order of runs.")
        measures.add_argument(
            "--measures",
            type=names_in,
            default=[],
            metavar="M,M",
            help='Further ones, such as "Success@5,ERR@10,RBP(p=0.8)": ours, and those of ir_measures.',
        )
        parser.add_argument("--seed", type=int, default=42)
        parser.add_argument("--execution", choices=["shared", "isolated"], default="shared")
        parser.add_argument("--dry-run", action="store_true", help="Say what would be done, and do nothing.")
        parser.add_argument("--wait", action="store_true", help="Wait for the end; works the queue if no worker does.")
        self.add_owner_argument(parser)
        self.add_json_argument(parser)

    def act(self, **options: Any) -> None:
        if options["manifest"]:
            self.run_again(**options)
            return
        if not options["mapping"]:
            raise BenchbenchError("Name a mapping to run over, or a manifest to run again with --manifest FILE.")
        mapping = find_mapping(options["mapping"])
        matrix = matrix_of(mapping, options)
        if options["dry_run"]:
            with in_options():
                planned = preview(mapping, matrix, measures=options["measures"])
            self.report(planned.as_dict(), preview_text(planned), as_json=options["json"])
            return
        with in_options():
            benchmark = create_benchmark(
                mapping,
                name=options["name"] or f"{mapping.name} {time.strftime('%Y-%m-%d %H:%M:%S')}",
                matrix=matrix,
                owner=options["owner"],
                execution=options["execution"],
                seed=options["seed"],
                measures=options["measures"],
            )
        operation = launch(benchmark, owner=options["owner"])
        if options["wait"]:
            self.wait_for(operation)
        benchmark.refresh_from_db()
        self.report(facts_of(benchmark), text_of(benchmark), as_json=options["json"])
        self.require_completed(benchmark)

    def run_again(self, **options: Any) -> None:
        """Run a manifest, and hold what comes of it against what came of it then."""
        manifest = read_manifest(Path(options["manifest"]))
        benchmark = benchmark_from(manifest, owner=options["owner"], name=options["name"] or "")
        self.wait_for(launch(benchmark, owner=options["owner"]))
        benchmark.refresh_from_db()
        if benchmark.status == Status.CANCELLED:
            self.require_completed(benchmark)
        verification = verify(benchmark)
        told = [verification.sentence, *verification.differences, *verification.environment]
        facts = facts_of(benchmark) | {"verification": verification.as_dict()}
        self.report(facts, "\n".join([text_of(benchmark), "", *told]), as_json=options["json"])
        if not verification.reproduces:
            raise BenchbenchError(verification.sentence)

    def require_completed(self, benchmark: Benchmark) -> None:
        if benchmark.status in (Status.FAILED, Status.CANCELLED):
            reason = benchmark.operation.error if benchmark.operation else ""
            raise BenchbenchError(f"The benchmark {benchmark.status}: {reason or 'none of its runs completed.'}")

    def wait_for(self, operation: Operation) -> None:
        progress = self.progress("benchmark")
        try:
            with contextlib.suppress(OperationFailedError):  # told with the report
                wait(operation, on_progress=progress.share)
        finally:
            progress.close()


def matrix_of(mapping: Mapping, options: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration matrix that the options describe; what is not given is left to the matrix's defaults."""
    given = {key: options[option.strip("-").replace("-", "_")] for key, option in OPTIONS.items()} | {
        "search_modes": options["modes"] or searchable(mapping),
        "use_reranker": {"on": [True], "off": [False], "both": [False, True]}[options["rerank"]],
        "rerankers": [options["reranker"]] if options["reranker"] else None,
    }
    return {key: value for key, value in given.items() if value is not None}


@contextlib.contextmanager
def in_options() -> Iterator[None]:
    """Let an error about the matrix name the options that were typed, not the keys that they became."""
    try:
        yield
    except MatrixError as error:
        # A key that is a plain word too is meant only where the message begins with it.
        names = re.sub(r"^\w+(?=:)|\b\w+_\w+\b", lambda found: OPTIONS.get(found[0], found[0]), error.message)
        raise MatrixError(names, field=error.field) from error


def searchable(mapping: Mapping) -> list[str]:
    """Return the modes that the collection's newest ready index can search."""
    index = mapping.collection.indexes.filter(status="ready").order_by("-ready_at").first()
    dense = bool(index and index.has_vectors)
    sparse = bool(index and index.lexical_index_id)
    return [mode for mode, can in (("dense", dense), ("sparse", sparse), ("hybrid", dense and sparse)) if can] or [
        "dense"
    ]
