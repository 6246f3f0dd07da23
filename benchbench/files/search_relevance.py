"""Judgment lists and query sets of OpenSearch's Search Relevance Workbench.

Sources: github.com/opensearch-project/documentation-website, `_search-plugins/search-relevance/judgments.md` and
`query-sets.md`; github.com/opensearch-project/search-relevance at d8be5d1, `ImportJudgmentsProcessor`; lines of queries
in github.com/opensearch-project/dashboards-search-relevance at 15bc179, `public/components/query_set/utils`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbench.decimals import list_some
from benchbench.errors import FileFormatError
from benchbench.files.ratings import RatedFile, Rating, build_text_key
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, read_as
from benchbench.reading.strict_json import parse, read_lines, read_text, read_value

KEY_VALUE = re.compile(r"query:\s*(.*?)(?:,\s*answer:\s*(.*?))?\s*", re.IGNORECASE | re.DOTALL)
OWN_KEYS = ("queryText", "referenceAnswer")


@dataclass(frozen=True, slots=True)
class _RatedDocument(StrictRecord):
    KEYS = {"id": "docId"}

    id: Identifier
    rating: Rating


@dataclass(frozen=True, slots=True)
class _JudgedQuery(StrictRecord):
    query: Filled
    ratings: Listed[_RatedDocument]


@dataclass(frozen=True, slots=True)
class _Entry(StrictRecord):
    IGNORES_OTHERS = True
    KEYS = {"text": "queryText", "answer": "referenceAnswer"}

    text: Filled
    answer: str = ""


@dataclass(frozen=True, slots=True)
class _Stored(StrictRecord):
    """A judgment list or a query set, as it is created or shown."""

    IGNORES_OTHERS = True
    KEYS = {"judged": "judgmentRatings", "entries": "querySetQueries"}

    name: str = ""
    description: str = ""
    type: str = ""
    judged: Listed[_JudgedQuery] = ()
    entries: Listed[dict[str, Any]] = ()


def read_judgment_list(path: Path) -> RatedFile:
    """Return the ratings of a judgment list: the body that creates it, or the answer that shows it.

    Entries with the same query are one query. Ratings by a language model have the source llm. Errors name the key.
    """
    judgment_list = read_as(_Stored, _unwrap(path), prefix=f"{path.name}, ")
    source = "llm" if judgment_list.type == "LLM_JUDGMENT" else "import"
    file = RatedFile(judgment_list.name, judgment_list.description, source)
    for number, judged in enumerate(judgment_list.judged):
        query = file.add_query(judged.query.strip())
        for position, rated in enumerate(judged.ratings):
            location = f"{path.name}, judgmentRatings[{number}].ratings[{position}],"
            file.add_rating(query, rated.id, rated.rating, location)
    if judgment_list.type == "UBI_JUDGMENT":
        file.warnings.append("These ratings were computed from clicks (UBI_JUDGMENT): no judge saw the documents.")
    return file


def read_query_set(path: Path) -> RatedFile:
    """Return the queries of a query set, without ratings.

    The file is the body that creates it, the answer that shows it, or lines as the Workbench takes them: JSON such as
    `{"queryText": "tv", "referenceAnswer": "…"}`, `query: "tv", answer: "…"`, or the text alone. A reference answer
    becomes the expected answer, another key metadata. A repeated query counts once. Errors name the line or key.
    """
    if '"querySetQueries"' not in read_text(path):
        file = RatedFile()
        for location, line in read_lines(path):
            value = parse(line, location=location) if line.lstrip().startswith("{") else _parse_line(line.strip())
            _add_entry(file, value, location)
        return file
    query_set = read_as(_Stored, _unwrap(path), prefix=f"{path.name}, ")
    file = RatedFile(query_set.name, query_set.description)
    for number, value in enumerate(query_set.entries):
        _add_entry(file, value, f"{path.name}, querySetQueries[{number}],")
    return file


def _parse_line(line: str) -> dict[str, str]:
    match = KEY_VALUE.fullmatch(line)
    if not match:
        return {"queryText": line}
    text, answer = (re.sub(r'^"(.*)"$', r"\1", group or "", flags=re.DOTALL) for group in match.groups())
    return {"queryText": text, "referenceAnswer": answer}


def _add_entry(file: RatedFile, value: Any, location: str) -> None:
    entry = read_as(_Entry, value, prefix=f"{location} ")
    key, answer = build_text_key(entry.text.strip()), entry.answer.strip()
    if key in file.queries and file.queries[key].expected_answer != answer:
        raise FileFormatError(f"{location} has another referenceAnswer than before, for the query {key[:60]!a}.")
    query = file.add_query(entry.text.strip())
    query.expected_answer = answer
    query.metadata |= {key: text for key, text in value.items() if key not in OWN_KEYS and text is not None}


def _unwrap(path: Path) -> Any:
    """Return the object of a file, or the only one in an answer of OpenSearch."""
    value = read_value(path)
    hits = value.get("hits") if isinstance(value, dict) else None
    if not isinstance(hits, dict) or not isinstance(hits.get("hits"), list):
        return value
    sources = [hit.get("_source") for hit in hits["hits"] if isinstance(hit, dict)]
    if len(sources) != 1:
        names = [str(source.get("name")) for source in sources if isinstance(source, dict)]
        raise FileFormatError(
            f"{path.name} is an answer with {len(sources)} hits ({list_some(names) or 'none'}): ask for one by its id."
        )
    return sources[0]
