"""Chunk sets: the chunks of one state of a collection, shared by indexes with equal chunking."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from django.db import connection, transaction
from django.utils import timezone

from apps.collections.models import Collection, Section, list_live
from apps.collections.records import DocumentRecord, SectionRecord
from apps.retrieval.building import require_chunk_limit, require_fitted_limit
from apps.retrieval.encoders.base import Encoder
from apps.retrieval.fingerprints import fingerprint, hash_text
from apps.retrieval.fitting import fit_pieces
from apps.retrieval.models import ChunkSet
from apps.retrieval.search.holding import find_locked_set
from apps.retrieval.strategies import TREES, get_strategy, select_chunk_parameters
from apps.retrieval.strategies.base import FIT, Piece
from benchbench.database.binary import batched

DOCUMENTS_AT_ONCE = 1000
COPY_CHUNKS = (
    "COPY retrieval_chunk "
    '(chunk_set_id, position, document_id, section_id, level, ordinal, text, text_hash, start, "end") FROM STDIN'
)
ADD_CHILDREN = """
    INSERT INTO retrieval_chunk_children (from_chunk_id, to_chunk_id)
    SELECT parent.id, child.id FROM unnest(%s::int[], %s::int[]) AS link (parent, child)
    JOIN retrieval_chunk parent ON parent.chunk_set_id = %s AND parent.position = link.parent
    JOIN retrieval_chunk child ON child.chunk_set_id = %s AND child.position = link.child
"""
SECTION = ("section_id", "heading", "level", "start", "end")


@transaction.atomic
def make_chunk_set(
    collection: Collection,
    *,
    strategy: str,
    parameters: Mapping[str, object],
    models: Mapping[str, object] | None = None,
    encoder: Encoder | None = None,
    on_part: Callable[[], None] = lambda: None,
) -> ChunkSet:
    """Return the chunk set of the collection's current documents, created in one transaction if missing.

    Positions number the chunks by external_id in code point order, then order in the document; equal scores rank in
    this order. Summaries follow, level by level, in the same order. Search parameters do not identify the set. Of its
    identity are `describe_models`: the models that grow a tree later (`retrieval.growing`), which starts with its
    chunks only, and the `encoder` whose window chunks are to fit. Locks the collection, so that imports wait, and the
    set, so that it is not deleted before an index uses it. `on_part` is called between parts and may raise. Raises
    StrategyError, ChunkingError, and IndexingError above BENCHBENCH_MAX_CHUNKS.
    """
    parameters = select_chunk_parameters(get_strategy(strategy), parameters)
    locked = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    key = fingerprint(
        collection=str(locked.pk),
        state=locked.fingerprint,
        strategy=strategy,
        parameters=dict(parameters),
        **models or {},
    )
    existing = find_locked_set(key)
    if existing:
        return existing
    require_chunk_limit(locked, strategy, parameters)
    started = time.perf_counter()
    chunk_set = ChunkSet.objects.create(
        collection=locked,
        collection_fingerprint=locked.fingerprint,
        strategy=strategy,
        parameters=parameters,
        fingerprint=key,
    )
    counts = _add_levels(chunk_set, encoder, on_part)
    chunk_set.chunk_count, chunk_set.summary_count = counts[0], sum(counts[1:])
    chunk_set.completed_at = None if strategy in TREES else timezone.now()
    chunk_set.build_seconds = time.perf_counter() - started
    chunk_set.save(update_fields=["chunk_count", "summary_count", "completed_at", "build_seconds", "updated_at"])
    return chunk_set


def _add_levels(chunk_set: ChunkSet, encoder: Encoder | None, on_part: Callable[[], None]) -> list[int]:
    """Store the pieces of all documents, level by level from the chunks up. Return the number of each level."""
    strategy = get_strategy(chunk_set.strategy)
    parameters = strategy.check(chunk_set.parameters)
    counts: list[int] = []
    below: dict[int, int] = {}  # the position of each document's first piece on the level below
    for level in range(strategy.levels):
        first = position = sum(counts)
        starts: dict[int, int] = {}
        for documents in _read_documents(chunk_set.collection):
            on_part()
            rows, links = [], []
            cut = [(record.text, strategy.cut_chunks(record, parameters)) for _, _, record in documents]
            fitted = fit_pieces(cut, encoder) if FIT in parameters and encoder else [chunks for _, chunks in cut]
            for (pk, section_ids, record), chunks in zip(documents, fitted, strict=True):
                if level + 1 < strategy.levels:
                    starts[pk] = position
                pieces = strategy.add_levels(record, chunks)
                for ordinal, piece in enumerate(piece for piece in pieces if piece.level == level):
                    rows.append((chunk_set.pk, position, pk, *_build_row(piece, ordinal, section_ids)))
                    links += [(position, below[pk] + child) for child in piece.children]
                    position += 1
            if FIT in parameters:
                require_fitted_limit(chunk_set.collection, position)
            store_pieces(chunk_set, rows, links)
        below = starts
        counts.append(position - first)
    return counts


def _build_row(piece: Piece, ordinal: int, section_ids: Sequence[int]) -> tuple[object, ...]:
    section = None if piece.section is None else section_ids[piece.section]
    return section, piece.level, ordinal, piece.text, hash_text(piece.text), piece.start, piece.end


def store_pieces(chunk_set: ChunkSet, rows: Sequence[tuple[object, ...]], links: Sequence[tuple[int, int]]) -> None:
    """Store chunks, and the links from parents to children, as positions."""
    with connection.cursor() as cursor:
        with cursor.cursor.copy(COPY_CHUNKS) as copy:
            for row in rows:
                copy.write_row(row)
        if links:
            parents, children = zip(*links, strict=True)
            cursor.execute(ADD_CHILDREN, [list(parents), list(children), chunk_set.pk, chunk_set.pk])


def _read_documents(collection: Collection) -> Iterator[list[tuple[int, list[int], DocumentRecord]]]:
    """Yield lists of documents by external_id: the key of each, those of its sections, and its record."""
    values = list_live(collection).order_by("external_id").values_list("pk", "external_id", "title", "text", "metadata")
    sections = _read_sections(collection)
    following = next(sections, None)
    for some in batched(values.iterator(chunk_size=DOCUMENTS_AT_ONCE), DOCUMENTS_AT_ONCE):
        documents = []
        for pk, external_id, title, text, metadata in some:
            keys: list[int] = []
            records: list[SectionRecord] = []
            if following and following[0] == pk:
                _, keys, records = following
                following = next(sections, None)
            documents.append((pk, keys, DocumentRecord(external_id, title, text, metadata=metadata, sections=records)))
        yield documents
    assert following is None, "the sections are not in the order of their documents"


def _read_sections(collection: Collection) -> Iterator[tuple[int, list[int], list[SectionRecord]]]:
    """Yield the key of each document that has sections, by external_id, with the keys and records of these.

    One query: asked for some documents at a time, PostgreSQL would read all sections that are not in its statistics.
    """
    sections = Section.objects.filter(document__collection=collection, document__removed_at=None)
    rows = sections.order_by("document__external_id", "ordinal").values_list("document_id", "pk", *SECTION)
    for document, group in groupby(rows.iterator(chunk_size=DOCUMENTS_AT_ONCE), key=itemgetter(0)):
        stored = list(group)
        yield document, [pk for _, pk, *_ in stored], [SectionRecord(*section) for _, _, *section in stored]
