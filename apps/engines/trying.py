"""One request to a declared engine, shown in full except for its secret."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.engines.answers import Hit, map_answer, parse_body
from apps.engines.errors import AnswerError
from apps.engines.guards import Request, Response, fetch, open_session
from apps.engines.records import Engine
from apps.engines.secrets import HIDDEN, Secret
from apps.engines.sending import build_request, list_pages
from apps.engines.storing import Question

LONGEST = 20_000  # characters of an answer that are shown


@dataclass(frozen=True, slots=True)
class Trial:
    """A request whose secret is hidden, its answer, and the hits, or the path that failed on a part of the answer."""

    request: Request
    response: Response
    body: str
    hits: list[Hit]
    total: int | None
    error: AnswerError | None


def try_engine(engine: Engine, parameters: Mapping[str, Any], question: Question, depth: int) -> Trial:
    """Ask an engine once, for the first page of a list of `depth` hits; nothing is stored. Raises EngineError."""
    secret = engine.read_secret()
    page = next(list_pages(engine, depth))
    request, displayed = (build_request(engine, parameters, question, page, each) for each in (secret, Secret(HIDDEN)))
    session = open_session(private=engine.private, ca_file=engine.ca_file)
    with session:
        response = fetch(session, request, engine.limits, subject=f"The engine {engine.alias}", secret=secret)
    body = secret.hide(response.body.decode("utf-8", "replace"), LONGEST)
    try:
        hits, total = map_answer(parse_body(response.body), engine.paths)
    except AnswerError as error:
        return Trial(displayed, response, body, [], None, error)
    return Trial(displayed, response, body, hits[:depth], total, None)
