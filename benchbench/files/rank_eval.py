"""Bodies of Elasticsearch's and OpenSearch's `_rank_eval`: requests with the ratings of their documents.

Sources: github.com/elastic/elasticsearch, `docs/reference/search/rank-eval.asciidoc`, and `RankEvalSpec`,
`RatedRequest` and `RatedDocument` in `modules/rank-eval/src/main/java/org/elasticsearch/index/rankeval`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchbench.decimals import list_some
from benchbench.errors import FileFormatError
from benchbench.files.ratings import RatedFile, Rating
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, read_as
from benchbench.reading.strict_json import read_value

# Keys of the query language whose string is the user's text, and queries that have it as `{FIELD: text}`.
TEXTS = ("query", "query_text", "model_text")
MATCHES = ("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix")


@dataclass(frozen=True, slots=True)
class _RatedDocument(StrictRecord):
    KEYS = {"index": "_index", "id": "_id"}

    index: Filled
    id: Identifier
    rating: Rating


@dataclass(frozen=True, slots=True)
class _Request(StrictRecord):
    id: Identifier
    ratings: Listed[_RatedDocument]
    request: dict[str, Any] = field(default_factory=dict)
    template_id: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    summary_fields: Any = None


@dataclass(frozen=True, slots=True)
class _Body(StrictRecord):
    requests: Listed[_Request]
    templates: Any = None
    metric: Any = None
    max_concurrent_searches: Any = None


def read_rank_eval(path: Path, *, columns: Mapping[str, str] = {}) -> RatedFile:
    """Return the requests of a body, with their ids as keys.

    The text of a query is the only text in its `request`, or the only string among its `params`. If there are several,
    `columns["text"]` names the parameter; "id" takes the request's id as its text. A document is its `_id`. If the
    body rates documents of several indexes, a document is INDEX/ID, because equal ids in two indexes are two documents;
    `columns["document_id"]` = "_id" takes the ids alone. Errors name file and key.
    """
    if unknown := sorted(columns.keys() - {"text", "document_id"}):
        raise FileFormatError(f"{unknown[0][:60]!a} is not a field of _rank_eval: choose text or document_id.")
    body = read_as(_Body, read_value(path), prefix=f"{path.name}, ")
    indexes = list(dict.fromkeys(rated.index for request in body.requests for rated in request.ratings))
    has_prefix = len(indexes) > 1 and columns.get("document_id") != "_id"
    file = RatedFile()
    for number, request in enumerate(body.requests):
        location = f"{path.name}, requests[{number}],"
        if request.id in file.queries:
            raise FileFormatError(f"{location} has the id {request.id[:60]!a}, as a request before it.")
        query = file.add_query(_find_text(request, columns.get("text", ""), location), request.id)
        for position, rated in enumerate(request.ratings):
            document = f"{rated.index}/{rated.id}" if has_prefix else rated.id
            if document in query.ratings:
                raise FileFormatError(f"{location} ratings[{position}], rates the document {document[:60]!a} again.")
            query.ratings[document] = rated.rating
    if has_prefix:
        file.warnings.append(
            f"Documents of {len(indexes)} indexes are rated ({list_some(indexes)}), so document_id is INDEX/ID: the "
            "collection's external ids must be the same. Use document_id=_id if ids are unique over all indexes."
        )
    return file


def _find_text(request: _Request, parameter: str, location: str) -> str:
    """Return the text of a request; `parameter` names it, if it is not blank."""
    if parameter == "id":
        return request.id
    if parameter and request.params:
        value = request.params.get(parameter)
        texts = {value.strip()} if isinstance(value, str) else set()
    else:
        strings = (value for value in request.params.values() if isinstance(value, str))
        texts = set(map(str.strip, strings if request.params else _yield_texts(request.request)))
    if len(texts) == 1 and all(texts):
        return texts.pop()
    names = ", ".join(request.params) or "no parameter"
    problem = f"has several texts ({list_some(sorted(texts))})" if texts else "has no text of a query"
    raise FileFormatError(
        f"{location} {problem}, with {names[:200]}: name the parameter that holds it by text=PARAMETER, or take the "
        "ids for texts by text=id, under Columns on the page, or with --column by the command."
    )


def _yield_texts(value: Any) -> Iterator[str]:
    """Yield the users' texts in a request, whichever queries it combines."""
    if isinstance(value, list):
        for item in value:
            yield from _yield_texts(item)
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in TEXTS and isinstance(inner, str):
                yield inner
            elif key in MATCHES and isinstance(inner, dict):
                yield from (text for text in inner.values() if isinstance(text, str))
            yield from _yield_texts(inner)
