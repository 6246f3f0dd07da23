"""Uploads of the greatest size: seconds, and by how much the process grows, in multiples of what it reads."""

import json
import random
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import throwaway

throwaway.open_site()

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import connections

from apps.collections.uploading import upload_collection
from apps.datasets.importing import import_dataset
from apps.datasets.uploading import read_upload

WORDS = [f"word{number}" for number in range(5_000)]
TEXT = 150  # words of a document, about 1,300 characters


def text(rng: random.Random, words: int = TEXT) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def write_corpus(path: Path, size: int) -> None:
    rng = random.Random(1)
    with path.open("w") as file:
        while file.tell() < size:
            file.writelines(
                json.dumps({"_id": f"d{file.tell()}-{n}", "title": f"On {n}", "text": text(rng)}) + "\n"
                for n in range(100)
            )


def write_zip(path: Path, size: int) -> None:
    """A folder of texts, stored and not packed, so that the file has the size that it unpacks to."""
    rng = random.Random(1)
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(min(size // 2_000, 9_000)):
            archive.writestr(f"docs/{n}.txt", text(rng, max(TEXT, size // 9_000 // 9)))


def write_beir(path: Path, size: int) -> None:
    rng = random.Random(1)
    lines = [json.dumps({"_id": f"q{n}", "text": text(rng, 8)}) for n in range(size // 400)]
    qrels = ["query-id\tcorpus-id\tscore"]
    qrels += [f"q{n}\tdocument-of-the-corpus-{rng.randrange(10**6)}\t1" for n in range(size // 400) for _ in range(8)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("beir/queries.jsonl", "\n".join(lines))
        archive.writestr("beir/qrels/test.tsv", "\n".join(qrels) + "\n")


def write_table(path: Path, size: int) -> None:
    rng = random.Random(1)
    rows = ["query_key,query_text,document_id,grade"]
    rows += [f"q{n // 10},{text(random.Random(n // 10), 6)},d{rng.randrange(10**6)},1" for n in range(size // 75)]
    path.write_text("\n".join(dict.fromkeys(rows)) + "\n")


def write_json(path: Path, size: int) -> None:
    rng = random.Random(1)
    queries = [
        {
            "query_key": f"q{n}",
            "query_text": text(rng, 8),
            "relevant_docs": [{"doc_ref": {"document_id": f"d{n}-{k}" + "x" * 40}} for k in range(100)],
        }
        for n in range(min(size // 11_000, settings.BENCHMARK_DATASET_MAX_QUERIES))
    ]
    path.write_text(json.dumps({"schema_version": "1.0", "queries": queries}))


def uploaded(path: Path) -> UploadedFile:
    return UploadedFile(path.open("rb"), path.name, size=path.stat().st_size)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name: str, path: Path, act: Callable[[UploadedFile], object]) -> None:
    with open("/proc/self/clear_refs", "w") as refs:  # the peak begins anew
        refs.write("5")
    before, started = peak(), time.perf_counter()
    told = act(uploaded(path))
    seconds, grown, size = time.perf_counter() - started, peak() - before, path.stat().st_size
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    grew = f"grew by {grown / 2**20:.0f} MiB = {grown / size:.1f} times"
    print(f"{name}: {size / 2**20:.0f} MiB, {seconds:.1f} s, {grew}; {told}")


def as_collection(upload: UploadedFile) -> object:
    return upload_collection(upload, name=str(upload.name))[1]


def as_dataset(upload: UploadedFile) -> object:
    imported = import_dataset(read_upload([upload]), name=str(upload.name))
    return imported.version


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    only = sys.argv[2:]
    large = int(settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES * share)
    small = int(settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES * share)
    unpacked = int(0.95 * settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES * share)  # its other files take the rest
    for name, ending, write, size, act in (
        ("corpus", "jsonl", write_corpus, large, as_collection),
        ("zip of texts", "zip", write_zip, large, as_collection),
        ("BEIR as a dataset", "zip", write_beir, unpacked, as_dataset),
        ("table", "csv", write_table, small, as_dataset),
        ("BenchBench JSON", "json", write_json, small, as_dataset),
    ):
        if only and ending not in only:
            continue
        connections.close_all()  # none crosses a fork
        with tempfile.TemporaryDirectory() as folder:  # a process of its own each, since the peak never falls
            path = Path(folder) / f"upload.{ending}"
            write(path, size)
            process = get_context("fork").Process(target=measure, args=(name, path, act))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
