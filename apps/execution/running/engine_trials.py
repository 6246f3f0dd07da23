"""Trying a declared search engine: one request, and what became of it in words. Nothing is stored."""

import json
from collections.abc import Mapping

from apps.engines.asking import PAGES
from apps.engines.records import Engine
from apps.engines.sending import Trial, try_engine
from apps.engines.storing import Question, Search
from apps.execution.running.engines import embed_for
from benchbench.decimals import counted
from benchbench.texts.storable import clean_text

LONGEST_PART = 2000  # characters of the part of an answer on which a path failed


def ask_engine(engine: Engine, text: str, parameters: Mapping[str, object], depth: int) -> Trial:
    """Ask an engine for the first `depth` hits of a query, with its vector if the engine needs one."""
    vector = None if engine.encoder is None else embed_for(engine, [text])[0].tolist()
    return try_engine(Search(engine, engine.complete(parameters), depth), Question(text, vector=vector))


def build_facts(trial: Trial, raw: bool) -> dict[str, object]:
    """Return the same as JSON values, with the answer as it came if `raw`."""
    request = {"method": trial.request.method, "url": trial.request.url, "headers": dict(trial.request.headers)}
    facts = {
        "request": request | {"body": (trial.request.data or b"").decode()},
        "status": trial.response.status,
        "milliseconds": round(trial.response.ms, 1),
        "total": trial.total,
        "hits": [hit._asdict() for hit in trial.hits],
        "error": trial.error and {"message": trial.error.message, "path": trial.error.path},
    }
    return facts | ({"answer": trial.body} if raw else {})


def render_trial(trial: Trial, engine: Engine, depth: int, *, raw: bool = False) -> str:
    """Return a trial in lines: the request without its secret, and the hits, or what the answer lacks."""
    request, error = trial.request, trial.error
    fewest = min(engine.page_size, depth) if engine.names & PAGES else depth
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
    if repeated := len(trial.hits) - len({hit.id for hit in trial.hits}):
        lines.append(f"{counted(repeated, 'hit')} of a document listed before: a benchmark counts its first alone.")
    for rank, hit in enumerate(trial.hits, start=1):
        score = "" if hit.score is None else f"  {hit.score:g}"
        lines.append(f"{rank:>4}  {hit.id}{score}  {hit.title}")
        if hit.snippet:
            lines.append(f"      {' '.join(hit.snippet.split())[:150]}")
    return "\n".join(lines)
