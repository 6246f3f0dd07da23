"""Fields of a table of judgments, and names that people give to their columns, in English, German and French."""

import re
from collections.abc import Collection, Iterable, Mapping

REFERENCES = ("doc_ref", "document_id", "uri", "content_hash", "path", "file_name")
FIELDS = (
    *("query_key", "query_text", "grade"),
    *REFERENCES,
    *("category", "difficulty", "query_type", "split", "expected_answer", "notes", "weight"),
)
# Of several columns with names for one field, the first name here decides. Names are compared by their letters alone.
SYNONYMS: dict[str, str] = {
    "query_key": "query_id qid question_id topic_id query_no frage_id",
    "query_text": "query question frage search_query search_term search_phrase suchanfrage anfrage suchbegriff "
    "query_string user_query keyword keywords requête prompt text",
    "grade": "rating relevance label score relevance_grade rel judgment judgement stars relevanz bewertung gain punkte "
    "relevant pertinence",
    "document_id": "doc_id doc_no document doc corpus_id passage_id dokument_id dokument dok product_id item_id "
    "article_id artikel_id pid",
    "uri": "url link web_page page_url document_url doc_url",
    "path": "file_path document_path doc_path pfad dateipfad",
    "file_name": "file datei dateiname document_name fichier",
    "content_hash": "sha256",
}
IN_QUERIES = ("id", "nr", "no")  # names for a query's key in a table without documents


def fold_column(name: str) -> str:
    """Return a column's name by its letters and digits alone, in small letters."""
    return re.sub(r"[\W_]+", "", name.casefold())


NAMES = {
    field: [fold_column(field), *(fold_column(name) for name in SYNONYMS.get(field, "").split())] for field in FIELDS
}


def assign_columns(names: Iterable[str], chosen: Mapping[str, str], ignored: Collection[str]) -> dict[str, str]:
    """Return the column of each field: the `chosen` one, else that of its own name, else that of a name for it.

    A column has one field, and an ignored one has no field.
    """
    free = [name for name in names if name not in ignored and name not in chosen.values()]
    assigned = {**chosen, **{name: name for name in free if name in FIELDS and name not in chosen}}
    by_letters = {fold_column(name): name for name in reversed(free) if name not in assigned.values()}
    for field, words in NAMES.items():
        word = next((word for word in words if word in by_letters), None)
        if word and field not in assigned:
            assigned[field] = by_letters.pop(word)
    if "query_key" not in assigned and assigned.keys().isdisjoint(REFERENCES):
        column = next((by_letters[word] for word in IN_QUERIES if word in by_letters), None)
        assigned |= {"query_key": column} if column else {}
    return assigned
