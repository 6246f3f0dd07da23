"""Ask a declared search engine once, and show request, answer and hits."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from apps.engines.asking import PAGES
from apps.engines.declarations import load_engine
from apps.engines.records import Engine
from apps.engines.sending import Trial, try_engine
from apps.engines.storing import Question, Search
from apps.execution.running.engines import embed_for
from apps.operations.commands import UseCaseCommand
from benchbench.texts.storable import clean_text

LONGEST_PART = 2000  # characters of the part of an answer on which a path failed


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
        parameters = engine.complete(dict(self.read_parameter(text) for text in options["param"]))
        search = Search(engine, parameters, options["depth"])
        trial = try_engine(search, build_question(engine, options["query"]))
        fewest = min(engine.page_size, options["depth"]) if engine.names & PAGES else options["depth"]
        text = render_trial(trial, options["raw"], fewest)
        self.report(build_facts(trial, options["raw"]), text, as_json=options["json"])
        if trial.error is not None:
            raise CommandError(trial.error.message, returncode=self.error_status)

    def read_parameter(self, text: str) -> tuple[str, Any]:
        name, separator, value = text.partition("=")
        if not separator:
            raise self.misuse(f"--param must be NAME=VALUE, not {text!r}.")
        try:
            return name, json.loads(value)
        except ValueError:
            return name, value


def build_question(engine: Engine, text: str) -> Question:
    """Return the question of a text, with its vector if the engine needs one."""
    if engine.encoder is None:
        return Question(text)
    return Question(text, vector=embed_for(engine, [text])[0].tolist())


def build_facts(trial: Trial, raw: bool) -> dict[str, Any]:
    request = {"method": trial.request.method, "url": trial.request.url, "headers": dict(trial.request.headers)}
    facts: dict[str, Any] = {
        "request": request | {"body": (trial.request.data or b"").decode()},
        "status": trial.response.status,
        "milliseconds": round(trial.response.ms, 1),
        "total": trial.total,
        "hits": [hit._asdict() for hit in trial.hits],
        "error": trial.error and {"message": trial.error.message, "path": trial.error.path},
    }
    return facts | ({"answer": trial.body} if raw else {})


def render_trial(trial: Trial, raw: bool, fewest: int) -> str:
    request, error = trial.request, trial.error
    lines = [f"{request.method} {request.url}", *(f"{name}: {value}" for name, value in request.headers.items())]
    if request.data:
        lines += ["", request.data.decode()]
    lines += ["", f"Answer: status {trial.response.status}, {trial.response.ms:,.1f} ms as seen from here"]
    if raw:
        lines += ["", trial.body]
    if error is not None:
        looked_at = json.dumps(error.looked_at, ensure_ascii=False, indent=2, default=str)
        failed = f"The path that failed: {error.path}" if error.path else "The answer cannot be read"
        excerpt = clean_text(looked_at, LONGEST_PART)
        return "\n".join([*lines, failed, "It looked at:", excerpt])
    total = "" if trial.total is None else f" of {trial.total:,}"
    lines.append(f"Hits: {len(trial.hits):,}{total}")
    if len(trial.hits) < min(fewest, trial.total or 0):
        lines.append(
            f"A benchmark refuses fewer than {fewest:,}: use {{offset}} or {{page}} in the declaration, lower "
            "page_size to what the engine returns, or leave out answer.total."
        )
    for rank, hit in enumerate(trial.hits, start=1):
        score = "" if hit.score is None else f"  {hit.score:g}"
        lines.append(f"{rank:>4}  {hit.id}{score}  {hit.title}")
        if hit.snippet:
            lines.append(f"      {' '.join(hit.snippet.split())[:150]}")
    return "\n".join(lines)
