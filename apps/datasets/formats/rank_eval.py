"""Reading bodies of Elasticsearch's and OpenSearch's `_rank_eval`: requests with the ratings of their documents.

Sources: github.com/elastic/elasticsearch, `docs/reference/search/rank-eval.asciidoc`, and `RankEvalSpec`,
`RatedRequest` and `RatedDocument` in `modules/rank-eval/src/main/java/org/elasticsearch/index/rankeval`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apps.datasets.formats.rated import Ratings
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.decimals import list_some
from benchbench.files.ratings import Rating
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
    IGNORES_OTHERS = True

    id: Identifier
    ratings: Listed[_RatedDocument]
    request: dict[str, object] = field(default_factory=dict)
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Body(StrictRecord):
    IGNORES_OTHERS = True

    requests: Listed[_Request]


def read_rank_eval(path: Path, *, columns: Mapping[str, str] = {}, grade_factor: int = 1) -> DatasetRecord:
    """Return the requests of a body, with their ids as keys.

    The text of a query is the only text in its `request`, or the only string among its `params`. If there are several,
    `columns["text"]` names the parameter; "id" takes the request's id as its text. A document is its `_id`. If two
    indexes have documents with one id, every document is INDEX/ID. Errors name file and key.
    """
    if unknown := columns.keys() - {"text"}:
        raise DatasetError(f"{min(unknown)[:60]!a} is not a field of _rank_eval: choose text.", field="columns")
    body = read_as(_Body, read_value(path), prefix=f"{path.name}, ")
    rated_ids = {(rated.index, rated.id) for request in body.requests for rated in request.ratings}
    has_prefix = len({id for _, id in rated_ids}) < len(rated_ids)
    ratings = Ratings(path, grade_factor)
    for number, request in enumerate(body.requests):
        location = f"{path.name}, requests[{number}],"
        text = _find_text(request, columns.get("text", ""), location)
        key = ratings.add_query(location, request.id, text=text)
        for rated in request.ratings:
            document = f"{rated.index}/{rated.id}" if has_prefix else rated.id
            ratings.add_rating(location, key, document, rated.rating)
    warning = "Two indexes have documents with one id, so document_id is INDEX/ID: the external ids must be the same."
    return ratings.build("rank-eval", warnings=[warning] if has_prefix else [])


def _find_text(request: _Request, parameter: str, location: str) -> str:
    """Return the text of a request; `parameter` names it, if it is not blank."""
    if parameter == "id":
        return request.id
    params = {parameter: request.params.get(parameter)} if parameter and request.params else request.params
    values = list(params.values()) or _yield_texts(request.request)
    texts = {value.strip() for value in values if isinstance(value, str)}
    if len(texts) == 1 and all(texts):
        return texts.pop()
    problem = f"has several texts ({list_some(sorted(texts))})" if texts else "has no text of a query"
    raise DatasetError(
        f"{location} {problem}, with {', '.join(request.params)[:200] or 'no parameter'}: name the parameter that "
        "holds it by text=PARAMETER, or take the ids for texts by text=id, under Columns.",
        field="columns",
        by_command="--column text=PARAMETER",
    )


def _yield_texts(value: object) -> Iterator[object]:
    """Yield the users' texts in a request, whichever queries it combines."""
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _yield_texts(item)
    if isinstance(value, dict):
        yield from (value.get(key) for key in TEXTS)
        yield from (text for key in MATCHES if isinstance(fields := value.get(key), dict) for text in fields.values())
