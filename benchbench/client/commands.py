"""The commands that call a site: what `benchbench` of the light wheel has, and `python -m benchbench.client`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbench.busy import clean_text
from benchbench.client.client import Answer, Client
from benchbench.client.connection import ClientError
from benchbench.client.pipeline import exit_status, pipeline
from benchbench.reading.ids import parse_uuid

SITE = "The site is that of BENCHBENCH_URL, with the token in BENCHBENCH_TOKEN."


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its line in the list of commands, the arguments of an example, what it does, and its options."""

    summary: str
    example: str
    act: Callable[[Client, argparse.Namespace], int]
    options: dict[str, dict[str, Any]]  # keywords of `add_argument` by flag or name
    statuses: str = "0; 2 with an error on stderr, or for wrong usage"


def main(arguments: Sequence[str], *, program: str = "benchbench") -> int:
    """Run the command `arguments`, whose first word is one of `COMMANDS`, and return the exit status."""
    name, *words = arguments
    options = build_parser(name, program).parse_args(words)
    try:
        with pipeline() as client:
            return COMMANDS[name].act(client, options)
    except KeyboardInterrupt:
        print("Interrupted. What was started on the site continues there.", file=sys.stderr)
        return 130


def build_parser(name: str, program: str = "benchbench") -> argparse.ArgumentParser:
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(
        f"{program} {name}",
        description=f"{command.summary}\n\n{SITE}",
        epilog=f"example:\n  {program} {name} {command.example}\n\nexit status: {command.statuses}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option, keywords in (command.options | {"--json": {"action": "store_true", "help": "print JSON"}}).items():
        parser.add_argument(option, **keywords)
    return parser


def find_benchmark(client: Client, subject: str) -> Answer:
    """Return the benchmark of an id or a name. Raises ClientError."""
    with suppress(ValueError):
        return dict(client.ask("GET", f"/benchmarks/{parse_uuid(subject)}"))
    return client.find_benchmark(subject)


@contextmanager
def show_progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a sentence on stderr, on a terminal in one line that disappears at the end."""
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""

    def show(sentence: str) -> None:
        print(f"{clear}{clean_text(sentence)}", end="" if clear else "\n", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(clear, end="", file=sys.stderr, flush=True)


def upload(client: Client, options: argparse.Namespace) -> int:
    dataset = client.upload(
        options.file, name=options.name or options.file.name, format=options.format, split=options.split
    )
    for warning in dataset["warnings"]:
        print(f"Warning: {clean_text(str(warning))}", file=sys.stderr)
    return _report(dataset, f"Dataset {dataset['id']}: {dataset['query_count']} queries.", options)


def run(client: Client, options: argparse.Namespace) -> int:
    try:
        matrix = json.loads(options.matrix)
    except ValueError as error:
        raise ClientError(f"--matrix is not JSON: {error}.", code="invalid") from None
    if not isinstance(matrix, dict):
        raise ClientError("--matrix is not a JSON object.", code="invalid")
    dataset = client.upload(options.file, name=options.dataset or options.file.name)
    with show_progress() as progress:
        collection = client.find_collection(options.collection)
        mapping = client.resolve(client.map(dataset, collection), progress=progress)
        benchmark = client.create_benchmark(options.name, mapping, matrix)
        started = client.start(benchmark)
        if options.wait:
            client.wait(started, progress=progress, timeout=options.timeout)
    if options.wait:
        return _show_results(client, benchmark, options)
    return _report(started, f"Benchmark {benchmark['id']} is running: benchbench wait {benchmark['id']}", options)


def wait(client: Client, options: argparse.Namespace) -> int:
    operation: Answer | str
    try:
        operation = find_benchmark(client, options.subject)
    except ClientError as error:
        if error.status != 404:
            raise
        operation = options.subject  # the id of another operation
    with show_progress() as progress:
        ended = client.wait(operation, progress=progress, timeout=options.timeout)
    return _report(ended, f"{ended['kind']}: {ended['status']}", options)


def results(client: Client, options: argparse.Namespace) -> int:
    return _show_results(client, find_benchmark(client, options.subject), options)


def gate(client: Client, options: argparse.Namespace) -> int:
    benchmark = find_benchmark(client, options.subject)
    run_choice = int(options.run) if options.run and options.run.isdecimal() else options.run
    verdict = client.gate(
        benchmark, options.rules.read_text(encoding="utf-8"), baseline=options.baseline, run=run_choice
    )
    if options.markdown:
        options.markdown.write_text(verdict["markdown"], encoding="utf-8")
    _report(verdict, verdict["markdown"].rstrip("\n"), options)
    return exit_status(verdict)


def export(client: Client, options: argparse.Namespace) -> int:
    benchmark = find_benchmark(client, options.subject)
    chosen = None
    if options.run:
        runs = client.results(benchmark)["runs"]
        if options.run > len(runs):
            raise ClientError(f"--run {options.run}: the benchmark has runs 1 to {len(runs)}.", code="not_found")
        chosen = runs[options.run - 1]
    content = client.export(benchmark, options.format, run=chosen)
    with options.output.open("wb" if options.force else "xb") as file:
        file.write(content)
    facts = {"path": str(options.output), "format": options.format, "bytes": len(content)}
    return _report(facts, f"Wrote {options.output}, {len(content):,} bytes.", options)


def serve_tools(client: Client, options: argparse.Namespace) -> int:
    try:
        from benchbench.client.mcp_server import serve
    except ModuleNotFoundError as error:
        print(f"mcp needs the package {error.name}: pip install 'benchbench[mcp]'", file=sys.stderr)
        return 2
    serve(client)
    return 0


def _show_results(client: Client, benchmark: Answer, options: argparse.Namespace) -> int:
    if options.json:
        return _report(client.results(benchmark), "", options)
    return _report({}, client.export(benchmark, "markdown").decode().rstrip("\n"), options)


def _report(facts: Answer, text: str, options: argparse.Namespace) -> int:
    print(json.dumps(facts, indent=2) if options.json else clean_text(text))
    return 0


BENCHMARK = {"subject": {"metavar": "BENCHMARK", "help": "its name or id"}}
FILE = {"file": {"type": Path, "metavar": "FILE", "help": "judged queries in any format that the site reads"}}
TIMEOUT = {"--timeout": {"type": float, "metavar": "SECONDS", "help": "how long to wait (default: to the end)"}}
MATRIX = '{"search_modes": ["dense", "sparse"]}'
COMMANDS: dict[str, Command] = {
    "upload": Command(
        "Upload judged queries.",
        "questions.json --name 'Support questions'",
        upload,
        FILE
        | {
            "--name": {"help": "name of the dataset (default: that of the file)"},
            "--format": {"default": "", "help": "its format, if it cannot be detected"},
            "--split": {"default": "", "help": "the split of a format that has several"},
        },
    ),
    "run": Command(
        "Upload judged queries, run a benchmark of them, and show its results.",
        f"questions.json --collection Handbook --name nightly --matrix '{MATRIX}'",
        run,
        FILE
        | {
            "--collection": {"required": True, "metavar": "NAME", "help": "the documents to search"},
            "--name": {"required": True, "help": "name of the benchmark"},
            "--dataset": {"metavar": "NAME", "help": "name of the dataset (default: that of the file)"},
            "--matrix": {"default": "{}", "metavar": "JSON", "help": "config_matrix of the API (default: the site's)"},
            "--no-wait": {"dest": "wait", "action": "store_false", "help": "only start it"},
        }
        | TIMEOUT,
    ),
    "wait": Command(
        "Wait for the end of a benchmark or another operation.",
        "nightly",
        wait,
        {"subject": {"metavar": "BENCHMARK|OPERATION", "help": "its name or id"}} | TIMEOUT,
    ),
    "results": Command("Show the verdict and the leaderboard of a benchmark.", "nightly", results, BENCHMARK),
    "gate": Command(
        "Judge a benchmark by written rules.",
        "nightly --rules gate.yaml --baseline main --markdown comment.md",
        gate,
        BENCHMARK
        | {
            "--rules": {"required": True, "type": Path, "metavar": "FILE", "help": "the rules, in YAML"},
            "--baseline": {"metavar": "NAME", "help": "a current baseline (default: none)"},
            "--run": {"metavar": "N|all", "help": "judge run N, or all (default: the best)"},
            "--markdown": {"type": Path, "metavar": "FILE", "help": "also write the Markdown to this file"},
        },
        "0 passed; 1 failed; 2 cannot be decided, an error, or wrong usage",
    ),
    "mcp": Command(
        "Serve tools to an assistant by the Model Context Protocol, over standard input and output.",
        "",
        serve_tools,
        {},
    ),
    "export": Command(
        "Write results to a file.",
        "nightly --run 2 --format trec-run --output dense.run",
        export,
        BENCHMARK
        | {
            "--format": {"required": True, "help": "a format of results, such as csv, markdown or trec-run"},
            "--run": {"type": int, "metavar": "N", "help": "run N of the benchmark, from 1 (default: all)"},
            "--output": {"required": True, "type": Path, "metavar": "FILE", "help": "the file to write"},
            "--force": {"action": "store_true", "help": "replace an existing file"},
        },
    ),
}
