"""Collections of which searches do not read everything."""

from typing import Any

from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.records import JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from apps.retrieval.models import Index, LexicalIndex
from apps.retrieval.search.lexical_indexes import make_lexical_index
from benchbench.ir.planning.lexical import Lexical
from tests.library import import_all


def import_texts(texts: list[str], queries: list[str], **index: Any) -> Mapping:
    """Import texts as d0, d1 … and queries as q0, q1 …, for each of which d0 is relevant."""
    documents = [DocumentRecord(f"d{number}", "", text) for number, text in enumerate(texts)]
    judged = [JudgmentRecord({"document_id": "d0"}, grade=1)]
    records = [QueryRecord(f"q{number}", text, judgments=judged) for number, text in enumerate(queries)]
    return import_all(documents, records, name="words", **index)


def read_as_english(lexical: str = "bm25") -> Index:
    """Return the only index, with BM25 as of a collection in English, by a lexical setting."""
    Collection.objects.update(language="english")
    index = Index.objects.get()
    index.lexical_index = None
    index.save()
    LexicalIndex.objects.all().delete()
    index.lexical_index = make_lexical_index(index.chunk_set, Lexical.parse(lexical))
    index.save()
    return index
