"""Sizes of indexes, known before any is built: how many pieces a strategy cuts a collection into."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import connection

from apps.collections.fingerprints import live
from apps.collections.models import Collection, Section
from apps.retrieval.building import IndexingError
from apps.retrieval.strategies import get_strategy
from apps.retrieval.strategies.flat import FlatStrategy

WINDOWS = "COALESCE(SUM(GREATEST(1, CEIL(({length}(text) - {overlap})::numeric / {step}))), 0)"


def most_pieces(collection: Collection, strategy: str, parameters: Mapping[str, Any], *, enough: int = 0) -> int:
    """Return how many pieces, chunks and summaries above them, the documents are cut into at most.

    `parameters` are complete. It reads the lengths of the texts in bytes, which are at hand; where these bound the
    pieces by no more than `enough`, that is the answer, and else the lengths in characters are counted.
    """
    if "size" not in parameters:
        return collection.document_count
    at_sections = "sections" in parameters or strategy != FlatStrategy.name
    sections = Section.objects.filter(document__in=live(collection)).count() if at_sections else 0
    # A section begins and ends a window where none did; what is between two is a piece of its level too.
    above = 2 * (collection.document_count + sections) if get_strategy(strategy).levels > 1 else 0
    for length in ("octet_length", "char_length"):
        most = _windows(collection, length, parameters["size"], parameters["overlap"]) + 2 * sections + above
        if most <= enough:
            break
    return most


def require_bounded(collection: Collection, strategy: str, parameters: Mapping[str, Any]) -> None:
    """Raise IndexingError where documents would be cut into more pieces than BENCHBENCH_MAX_CHUNKS.

    Whole documents are as many as they are. `parameters` are complete.
    """
    limit = settings.BENCHBENCH_MAX_CHUNKS
    if "size" not in parameters or (most := most_pieces(collection, strategy, parameters, enough=limit)) <= limit:
        return
    raise IndexingError(
        f"A chunk size of {parameters['size']} cuts the {collection.document_count:,} documents of "
        f'"{collection}" into up to {most:,} chunks, and an index has at most {limit:,} (BENCHBENCH_MAX_CHUNKS): '
        "choose larger chunks, or a smaller overlap.",
        field="chunk_parameters",
    )


def _windows(collection: Collection, length: str, size: int, overlap: int) -> int:
    documents, arguments = live(collection).values("text").query.sql_with_params()
    counted = WINDOWS.format(length=length, overlap=int(overlap), step=int(size - overlap))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counted} FROM ({documents}) AS document", arguments)
        return int(cursor.fetchone()[0])
