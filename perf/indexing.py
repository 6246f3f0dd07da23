"""Building an index: writing vectors, encoding texts, and building again after a few documents changed.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place) for their texts; the model
is the real one that the demo uses.

python perf/indexing.py [writing] [encoding] [rebuilding]
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import throwaway

throwaway.open_site()

import numpy as np
from django.conf import settings
from django.db import connection, transaction

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.operations.working import wait
from apps.retrieval.building import MAX_BATCH_CHUNKS, insert_vectors, prepare_table
from apps.retrieval.chunking import make_chunk_set
from apps.retrieval.encoders import load_encoder
from apps.retrieval.encoders.base import BATCH, Encoder
from apps.retrieval.encoders.encoding import encode_texts
from apps.retrieval.encoders.registry import SentenceTransformerEncoder, has_bfloat16
from apps.retrieval.encoders.token_store import delete_tokens
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import CachedVector, Index
from apps.retrieval.search import vectors as tables
from benchbench.ir.encoding import EncoderParameters

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data")
VECTORS, DIMENSION = 20_000, 384
TEXTS, DOCUMENTS, CHANGED = 320, 1_000, 10
WRITE_BYTES = 2**20


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def table(title: str, rates: dict[str, list[float]], unit: str) -> None:
    """Print the median and range of each rate, and the median of its ratio to the first's in the same round."""
    print(f"\n{title}\n{'':<44} {unit:>12} {'range':>19} {'of bare':>8}")
    bare = next(iter(rates.values()))
    for name, measured in rates.items():
        ratio = statistics.median(one / other for one, other in zip(measured, bare, strict=True))
        spread = f"{min(measured):,.1f} – {max(measured):,.1f}"
        print(f"{name:<44} {statistics.median(measured):>12,.1f} {spread:>19} {ratio:>8.2f}")


def alternating(acts: dict[str, Callable[[], object]], *, units: int, rounds: int) -> dict[str, list[float]]:
    """Units a second of each act, round by round; a first round warms up."""
    rates: dict[str, list[float]] = {name: [] for name in acts}
    for number in range(rounds + 1):
        for name, act in acts.items():
            seconds = timed(act)
            if number:
                rates[name].append(units / seconds)
    return rates


def empty_index() -> Index:
    """Return an index of so many short documents, with a table and no vectors in it."""
    collection = create_collection("numbers")
    import_documents(collection, [DocumentRecord(f"{number:06}", "", f"number {number}") for number in range(VECTORS)])
    index = create_index(collection, name="numbers", lexical=False, encoder="keyword:number")
    index.chunk_set = make_chunk_set(collection, strategy="flat", parameters={})
    prepare_table(index, index.chunk_set, revision="1", dimension=DIMENSION)
    return index


@transaction.atomic
def copy_bare(table: str, stream: bytes) -> None:
    with (
        connection.cursor() as cursor,
        cursor.cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy,
    ):
        for start in range(0, len(stream), WRITE_BYTES):
            copy.write(stream[start : start + WRITE_BYTES])


def writing() -> None:
    """Vectors into the table of an index, committed, as a build does, against a bare COPY of the same rows."""
    index = empty_index()
    vectors = np.random.default_rng(1).standard_normal((VECTORS, DIMENSION)).astype(np.float32)
    positions = np.arange(VECTORS)
    name = index.vector_table

    def empty() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {name}")
            cursor.execute("CHECKPOINT")

    tables.insert_rows(name, positions, vectors)
    with connection.cursor() as cursor, cursor.cursor.copy(f"COPY {name} TO STDOUT (FORMAT BINARY)") as copy:
        stream = b"".join(copy)  # the rows in PostgreSQL's own words

    @transaction.atomic
    def by_store() -> None:
        tables.insert_rows(name, positions, vectors)

    def by_build() -> None:
        for start in range(0, VECTORS, MAX_BATCH_CHUNKS):
            part = slice(start, start + MAX_BATCH_CHUNKS)
            with transaction.atomic():
                insert_vectors(index, positions[part], vectors[part])

    acts = {
        "bare binary COPY, its bytes made before": lambda: copy_bare(name, stream),
        "the store": by_store,
        "a build, which looks for metadata": by_build,
    }
    rates: dict[str, list[float]] = {act: [] for act in acts}
    for _ in range(7):
        for act, write in acts.items():
            empty()
            rates[act].append(VECTORS / timed(write))
    table(f"Writing {VECTORS:,} vectors of {DIMENSION} dimensions", rates, "vectors/s")


def real_texts(name: str, count: int) -> list[str]:
    """The texts of documents spread evenly over a test collection, title first."""
    rows = [json.loads(line) for line in (DATA / name / "corpus.jsonl").read_text().splitlines()]
    return [f"{row['title']} {row['text']}".strip() for row in rows[:: len(rows) // count][:count]]


def encoding() -> None:
    """All that encoding for a build does, against one call of the library, which sorts by length too.

    Also in reduced precision, where the device has products in bfloat16.
    """
    encoder = load_encoder(settings.BENCHBENCH_DEFAULT_MODEL)
    assert isinstance(encoder, SentenceTransformerEncoder)
    model = encoder._model
    room = settings.BENCHBENCH_TOKEN_BYTES
    reduced = ("mixed", "bfloat16") if has_bfloat16(encoder.device) else ()
    for name in ("scifact", "cranfield"):
        texts = real_texts(name, TEXTS)

        def bare() -> None:
            model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)  # noqa: B023

        def ours(token_bytes: int, one: Encoder = encoder) -> None:
            settings.BENCHBENCH_TOKEN_BYTES = token_bytes
            delete_tokens(one.model_name, one.revision, "document")
            encode_texts(one, texts)  # noqa: B023

        precise = {name: load_encoder(encoder.model_name, EncoderParameters(precision=name)) for name in reduced}
        acts: dict[str, Callable[[], object]] = {
            f"model.encode, batches of {BATCH}": bare,
            "encode_texts, token vectors kept": lambda: ours(room),
            "encode_texts, no room for them": lambda: ours(0),
        }
        acts |= {f"encode_texts, {precision}": partial(ours, room, one) for precision, one in precise.items()}
        rates = alternating(acts, units=len(texts), rounds=3)
        table(f"Encoding {len(texts)} documents of {name} on {encoder.device}", rates, "texts/s")
        for precision, one in precise.items():
            cosines = (encode_texts(one, texts) * encode_texts(encoder, texts)).sum(axis=1)
            print(f"{precision}: a cosine of at least {cosines.min():.5f} to float32")
    if not reduced:
        print(f"\nThis {encoder.device} has no products in bfloat16: mixed and bfloat16 would be slower, not measured.")


def build(collection: Collection) -> Index:
    index = create_index(collection, name="index", encoder=settings.BENCHBENCH_DEFAULT_MODEL)
    wait(build_index(index))
    index.refresh_from_db()
    return index


def rebuilding() -> None:
    """A full build from nothing, and builds of the next versions after a few documents changed each time."""
    load_encoder(settings.BENCHBENCH_DEFAULT_MODEL).embed_batch(["warm"])
    CachedVector.objects.all().delete()
    texts = real_texts("cranfield", DOCUMENTS)
    records = [DocumentRecord(f"{number:04}", "", text) for number, text in enumerate(texts)]
    collection = create_collection("cranfield")
    import_documents(collection, records)
    full = timed(lambda: build(collection))
    again = []
    for number in range(5):
        changed = records[number :: DOCUMENTS // CHANGED]
        edited = [DocumentRecord(one.external_id, "", f"{one.text} Edition {number}.") for one in changed]
        import_documents(collection, edited)
        collection.refresh_from_db()
        made = CachedVector.objects.count()
        again.append(timed(lambda: build(collection)))
        assert CachedVector.objects.count() - made == len(edited) == CHANGED, "more was encoded than had changed"
    print(f"\nBuilding an index of {DOCUMENTS:,} documents of cranfield, BM25 too")
    print(f"from nothing {full:.2f} s ({DOCUMENTS / full:.1f} documents/s)")
    print(
        f"after {CHANGED} documents changed {statistics.median(again):.2f} s ({min(again):.2f} – {max(again):.2f}), "
        f"{statistics.median(again) / full:.1%} of it; {CHANGED} texts encoded each time"
    )


def main() -> None:
    parts = {"writing": writing, "encoding": encoding, "rebuilding": rebuilding}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="part", help=f"of {', '.join(parts)}; or all")
    for part in parser.parse_args().parts or parts:
        parts[part]()


if __name__ == "__main__":
    main()
