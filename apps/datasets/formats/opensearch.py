"""Reading judgment lists and query sets of OpenSearch's Search Relevance Workbench.

Sources: github.com/opensearch-project/documentation-website, `_search-plugins/search-relevance/judgments.md` and
`query-sets.md`; github.com/opensearch-project/search-relevance at d8be5d1, `ImportJudgmentsProcessor`.
"""

from dataclasses import dataclass
from pathlib import Path

from apps.datasets.formats.rated import Ratings
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.files.ratings import Rating, build_text_key
from benchbench.reading.objects import Filled, Identifier, Listed, StrictRecord, read_as
from benchbench.reading.strict_json import read_objects, read_text, read_value

CLICKS = "These ratings were computed from clicks (UBI_JUDGMENT): no judge saw the documents."


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
    entries: Listed[_Entry] = ()


def read_judgment_list(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the ratings of a judgment list: the body that creates it, or the answer that shows it.

    Entries with the same query are one query. Ratings by a language model have the source llm. Errors name the key.
    """
    stored, ratings = _read_stored(path), Ratings(path, grade_factor)
    for number, judged in enumerate(stored.judged):
        key = ratings.add_query("", build_text_key(judged.query), text=judged.query)
        for position, rated in enumerate(judged.ratings):
            location = f"{path.name}, judgmentRatings[{number}].ratings[{position}],"
            ratings.add_rating(location, key, rated.id, rated.rating)
    return ratings.build(
        "opensearch-judgments",
        name=stored.name,
        description=stored.description,
        source="llm" if stored.type == "LLM_JUDGMENT" else "import",
        warnings=[CLICKS] if stored.type == "UBI_JUDGMENT" else [],
    )


def read_query_set(path: Path) -> DatasetRecord:
    """Return the queries of a query set, without ratings.

    The file is the body that creates it, the answer that shows it, or lines such as `{"queryText": "tv",
    "referenceAnswer": "…"}`. A reference answer becomes the expected answer; other keys are not read. A repeated query
    counts once. Errors name the line or key.
    """
    stored, ratings = _Stored(), Ratings(path, 1)
    if '"querySetQueries"' in read_text(path):
        stored = _read_stored(path)
        entries = [(f"{path.name}, querySetQueries[{number}],", entry) for number, entry in enumerate(stored.entries)]
    else:
        entries = [(line, read_as(_Entry, value, prefix=f"{line} ")) for line, value in read_objects(path)]
    for location, entry in entries:
        ratings.add_query(location, build_text_key(entry.text), text=entry.text, expected_answer=entry.answer.strip())
    return ratings.build("opensearch-queries", name=stored.name, description=stored.description)


def _read_stored(path: Path) -> _Stored:
    """Return the object of a file, or the only one in an answer of OpenSearch."""
    value = read_value(path)
    match value:
        case {"hits": {"hits": [{"_source": value}]}}:
            pass
        case {"hits": {"hits": hits}}:
            raise DatasetError(f"{path.name} is an answer with {len(hits)} hits: ask for one by its id.")
    return read_as(_Stored, value, prefix=f"{path.name}, ")
