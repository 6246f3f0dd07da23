"""Benchmark search over the Python documentation, and serve the site to look at it."""

import signal
import time
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from apps.demo import preparing
from apps.demo.engine import ALIAS, serve_engine
from apps.execution.launching import launch
from apps.operations.commands import UseCaseCommand
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import RunResult, build_results
from apps.retrieval.indexing import find_or_start_build
from apps.retrieval.models import Index
from benchbench.database.tables import explain_unusable
from benchbench.database.upgrading import upgrade
from benchbench.decimals import signed
from benchbench.errors import BenchbenchError
from benchbench.site.serving import find_free_port, give_login, serve_site

HOST = "127.0.0.1"
USERNAME = "demo"


class Command(UseCaseCommand):
    help = """Benchmark search over the Python documentation, and serve the site to look at it.

Imports the documentation and 81 judged questions, embeds it with all-MiniLM-L6-v2, runs dense, lexical and hybrid
search in eight configurations, with and without reranking, prints the leaderboard, and serves the site until Ctrl-C.

  benchbench demo
  benchbench demo --no-serve
  benchbench demo --engine
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-serve", action="store_true", help="End after the leaderboard.")
        parser.add_argument(
            "--engine",
            action="store_true",
            help="Start a search engine (Datasette) of the same documents, and compare it with the other runs.",
        )
        parser.add_argument("--port", type=int, default=8000, help="First port to try (default: 8000).")

    def act(self, **options: Any) -> None:
        if not settings.EMBEDDED:
            raise BenchbenchError(
                "The demo creates a superuser, so it runs only on the embedded database: unset DATABASE_URL."
            )
        self.print_line("Preparing the database …")
        upgrade(self.print_line)
        if sentence := explain_unusable("benchbench"):
            raise BenchbenchError(sentence)
        with ExitStack() as stack:
            if options["engine"]:
                self.print_line("Starting a search engine …")
                stack.enter_context(serve_engine(HOST, find_port(options["port"] + 1), preparing.CORPUS))
            self.run_or_serve(**options)

    def run_or_serve(self, **options: Any) -> None:
        self.engines = [ALIAS] if options["engine"] else []
        if options["no_serve"]:
            self.run_main_job()
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # `kill` stops the site and the worker too
        port = find_port(options["port"])
        password = give_login(USERNAME)
        self.print_line("Starting the site and a worker …")
        engines = {"BENCHBENCH_ENGINES": str(settings.BENCHBENCH_ENGINES)}
        with serve_site(HOST, port, workers=1, environment=engines):
            login = f"http://{HOST}:{port}/   user: {USERNAME}   password: {password}"
            self.print_line(f"The site is running; watch the benchmark there:\n  {login}")
            path = self.run_main_job()
            self.print_line(f"\nOpen http://{HOST}:{port}{path}\n  {login}\nCtrl-C stops the site.")
            self.serve_on()

    def run_main_job(self) -> str:
        """Run everything from the import to the leaderboard. Return the path of the benchmark's page."""
        began = time.monotonic()
        owner = None
        collection = preparing.prepare_collection(owner)
        mapping = preparing.prepare_mapping(collection, owner)
        self.print_line(
            f"{collection.document_count:,} documents, {mapping.dataset.queries.count()} questions, "
            f"{mapping.mapped_count:,} of {mapping.total_count:,} judgments resolved."
        )
        index = preparing.prepare_index(collection, owner)
        if index.status != Index.Status.READY:
            self.print_line(f"Embedding the documents with {index.encoder} …")
            with self.progress("documents") as progress:
                wait(find_or_start_build(index), on_progress=progress.show_documents)
        benchmark = preparing.prepare_benchmark(mapping, owner, engines=self.engines)
        self.print_line(f"Running {benchmark.total_runs} configurations …")
        running = launch(benchmark)
        with self.progress("benchmark") as progress:
            wait(running, on_progress=progress.show_percent)
        benchmark.refresh_from_db()
        self.stdout.write("\n" + render_text(benchmark))
        self.print_line("\n" + describe_reranking(benchmark))
        self.print_line(f"\nDone in {time.monotonic() - began:.0f} seconds.")
        return f"/admin/benchmarks/benchmark/{benchmark.pk}/results/"

    def serve_on(self) -> None:
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            self.print_line("\nStopping.")

    def print_line(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()


def describe_reranking(benchmark: Benchmark) -> str:
    """Return a line per completed run with a reranked twin: its gain in nDCG and its cost in ms. "" without twins."""
    runs = [run for run in build_results(benchmark).runs if run.status == Run.Status.COMPLETED]
    runs_by_config = {_get_base_config(run): run for run in runs if not run.config["use_reranker"]}
    primary = f"ndcg@{benchmark.primary_k}"
    lines = []
    for run in runs:
        twin = runs_by_config.get(_get_base_config(run)) if run.config["use_reranker"] else None
        if twin is None:
            continue
        if reasons := [f"  {one.label}: {one.unranked}" for one in (twin, run) if one.unranked]:
            lines += reasons
            continue
        before, after = (one.metrics_flat[primary] or 0 for one in (twin, run))
        ms = run.timing.per_query["total_ms"] - twin.timing.per_query["total_ms"]
        gain = f"{before:.4f} → {after:.4f} ({signed(after - before)})"
        lines.append(f"  {twin.label}: {gain}, {signed(ms, 0)} ms a query")
    head = f"Effect of reranking on nDCG@{benchmark.primary_k}; the benchmark's page shows its significance:"
    return "\n".join([head, *lines]) if lines else ""


def _get_base_config(run: RunResult) -> tuple[tuple[str, str], ...]:
    """Return the configuration without its reranking options."""
    return tuple(sorted((key, str(value)) for key, value in run.config.items() if "rerank" not in key))


def find_port(first: int) -> int:
    return find_free_port(HOST, range(first, min(first + 100, 65_536)))
