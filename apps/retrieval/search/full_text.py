"""PostgreSQL's full-text search over a chunk set: a table of the chunks' lexemes with a GIN index.

It is a LexicalIndex without pieces, with a separate table in their place.
"""

from collections.abc import Sequence

import numpy as np
from django.db import DataError, OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from numpy.typing import NDArray
from psycopg import sql

from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import Chunk, ChunkSet, LexicalIndex
from apps.retrieval.search.admission import admit_positions
from apps.retrieval.search.holding import lock_for_index
from apps.retrieval.search.lexical_indexes import LexicalIndexError
from apps.retrieval.search.word_stats import WordStats, guess_chunk_language
from benchbench.database.bin import drop_table
from benchbench.deleting import delete_all
from benchbench.ir.planning.lexical import FULL_TEXT, Lexical
from benchbench.ir.records import Mask, ScoredList
from benchbench.texts.languages import DEFAULT

ENGINE = FULL_TEXT
USUAL = Lexical.parse(FULL_TEXT)
# Normalisation 1 divides a rank by 1 + the logarithm of the chunk's length. Measured nDCG@10 on SciFact and Cranfield:
# .603 and .464 with it, .578 and .388 without; at best .470 and .378 with ts_rank_cd, which takes four times as long.
RANKING: dict[str, object] = {"rank": "ts_rank", "normalization": 1}
# The languages that PostgreSQL has a configuration for, with stems and stop words. Others have "simple": lower case.
CONFIGURATIONS = frozenset(
    {"arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish", "french", "german"}
    | {"greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian"}
    | {"portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"}
)


def find_full_text(chunk_set: ChunkSet, setting: Lexical = USUAL) -> LexicalIndex | None:
    """Return the full-text index of a chunk set in the language of a setting, or None."""
    return LexicalIndex.objects.filter(fingerprint=_build_key(chunk_set, setting)).first()


@transaction.atomic
def make_full_text(chunk_set: ChunkSet, setting: Lexical = USUAL) -> LexicalIndex:
    """Return the full-text index of a chunk set in the language of a setting, created in one transaction if missing.

    Raises LexicalIndexError for a chunk with more words than PostgreSQL allows in a text.
    """
    lock_for_index(chunk_set, ENGINE)
    if existing := find_full_text(chunk_set, setting):
        return existing
    index = LexicalIndex.objects.create(
        chunk_set=chunk_set,
        engine=ENGINE,
        parameters=_describe(chunk_set, setting),
        fingerprint=_build_key(chunk_set, setting),
        completed_at=timezone.now(),
    )
    table = sql.Identifier(_name_table(index))
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE TABLE {} (position integer PRIMARY KEY, words tsvector NOT NULL)").format(table))
        _fill(cursor, table, index)
        cursor.execute(sql.SQL("CREATE INDEX ON {} USING gin (words)").format(table))
        cursor.execute(sql.SQL("ANALYZE {}").format(table))
        cursor.execute("SELECT pg_total_relation_size(%s)", [_name_table(index)])
        index.size_bytes = cursor.fetchone()[0]
        index.stats = _count(cursor, table, chunk_set).as_dict()
    index.save(update_fields=["size_bytes", "stats"])
    return index


def _fill(cursor: CursorWrapper, table: sql.Identifier, full_text: LexicalIndex) -> None:
    statement = sql.SQL(
        "INSERT INTO {table} SELECT position, to_tsvector({configuration}, text) FROM {chunks} "
        "WHERE chunk_set_id = %s AND level = 0"
    ).format(
        table=table,
        configuration=sql.Literal(full_text.parameters["configuration"]),
        chunks=sql.Identifier(Chunk._meta.db_table),
    )
    try:
        with transaction.atomic():
            cursor.execute(statement, [full_text.chunk_set_id])
    except (DataError, OperationalError) as error:
        if "too long for tsvector" not in str(error):
            raise
        raise LexicalIndexError(
            f"PostgreSQL's full text allows 1 MB of distinct words per text; the {full_text.chunk_set} have a "
            "longer one. Split the documents into smaller chunks, or search them by bm25."
        ) from error


def _count(cursor: CursorWrapper, table: sql.Identifier, chunk_set: ChunkSet) -> WordStats:
    """Return the counts of a full-text index, without those of its terms, which PostgreSQL divides."""
    statement = (
        "SELECT count(*), count(*) FILTER (WHERE length(words) = 0), min(position) FILTER (WHERE length(words) = 0) "
        "FROM {}"
    )
    cursor.execute(sql.SQL(statement).format(table))
    chunks, without, first = cursor.fetchone()
    guess = guess_chunk_language(chunk_set)
    return WordStats(
        chunks=chunks,
        without_terms=without,
        first_without=first,
        guessed=guess.language,
        agreeing=guess.agreeing,
        sampled=guess.sampled,
    )


def search_full_text(
    full_text: LexicalIndex, texts: Sequence[str], depth: int, *, mask: NDArray[np.bool_] | None = None
) -> list[ScoredList]:
    """Return the best `depth` chunks that share a word with each text, by rank, then position.

    Words are lexemes: stemmed, without stop words; any of them matches. `mask` (n,) admits chunks.
    """
    parsed = parse_texts(full_text, texts)
    with connection.cursor() as cursor:
        return [_search(cursor, full_text, lexemes, depth, mask) for lexemes in parsed]


def parse_texts(full_text: LexicalIndex, texts: Sequence[str]) -> list[list[str]]:
    """Return the lexemes of each text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tsvector_to_array(to_tsvector(%s::regconfig, text)) FROM unnest(%s::text[]) "
            "WITH ORDINALITY AS t (text, n) ORDER BY n",
            [full_text.parameters["configuration"], list(texts)],
        )
        return [row[0] for row in cursor.fetchall()]


def delete_full_text(full_text: LexicalIndex) -> None:
    """Delete a full-text index with its table."""
    drop_table(_name_table(full_text))
    delete_all([full_text])


def _search(
    cursor: CursorWrapper, full_text: LexicalIndex, lexemes: Sequence[str], depth: int, mask: Mask | None
) -> ScoredList:
    if not lexemes:
        return ScoredList.empty()
    condition, admitted = ("true", None) if mask is None else admit_positions(mask)
    statement = sql.SQL(
        "SELECT position, {rank}(words, %(query)s::tsquery, {normalization}) AS score FROM {table} "
        "WHERE words @@ %(query)s::tsquery AND {condition} ORDER BY score DESC, position LIMIT {depth}"
    ).format(
        rank=sql.SQL(full_text.parameters["rank"]),
        normalization=sql.Literal(full_text.parameters["normalization"]),
        table=sql.Identifier(_name_table(full_text)),
        condition=sql.SQL(condition).format(position=sql.SQL("position"), admitted=sql.SQL("%(admitted)s")),
        depth=sql.Literal(depth),
    )
    escaped = (lexeme.replace("\\", "\\\\").replace("'", "''") for lexeme in lexemes)
    query = " | ".join(f"'{lexeme}'" for lexeme in escaped)
    cursor.execute(statement, {"query": query, "admitted": admitted})
    rows = [row for row in cursor.fetchall() if row[1] > 0]
    return ScoredList(np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64))


def _build_key(chunk_set: ChunkSet, setting: Lexical) -> str:
    return fingerprint(chunk_set=chunk_set.fingerprint, engine=ENGINE, parameters=_describe(chunk_set, setting))


def _describe(chunk_set: ChunkSet, setting: Lexical) -> dict[str, object]:
    language = setting["language"] or chunk_set.collection.language or DEFAULT
    return {"configuration": language if language in CONFIGURATIONS else "simple", **RANKING}


def _name_table(full_text: LexicalIndex) -> str:
    return f"words_{full_text.pk.hex}"
