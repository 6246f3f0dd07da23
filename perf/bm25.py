"""Building BM25 block by block, and searching it mapped, against bm25s alone: time and memory by size.

The texts are synthetic: 100 words of a Zipfian vocabulary of 200,000. Each figure is of a fresh process, whose peak is
that of its resident set; reading the texts from a file counts. At 100,000 texts the postings of both are compared.

python perf/bm25.py [--million]
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from apps.retrieval.analysis.analyzers import build_analyzer
from apps.retrieval.search.lexical import K1, B, Bm25
from apps.retrieval.search.term_counts import write_bm25

VOCABULARY, WORDS, QUERIES, DEPTH = 200_000, 100, 300, 100
COMPARED = 100_000
ENGLISH = build_analyzer("english")
ROOT = Path(__file__).resolve().parent.parent


def write_texts(count: int, folder: Path) -> dict[str, float]:
    letters = random.Random(1)
    words = np.array(["".join(letters.choices("abcdefghijklmnoprstuvw", k=k % 7 + 4)) for k in range(VOCABULARY)])
    shares = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    draw = np.random.default_rng(2)
    with (folder / "texts").open("w") as out:
        for start in range(0, count, 10_000):
            rows = draw.random((min(10_000, count - start), WORDS)) * shares[-1]
            out.writelines(" ".join(row) + "\n" for row in words[np.searchsorted(shares, rows)].tolist())
    return {}


def read_texts(count: int, file: Path) -> Iterator[str]:
    with file.open() as lines:
        yield from islice(lines, count)


def build(count: int, folder: Path) -> dict[str, float]:
    with (folder / "ours").open("wb") as out:
        write_bm25(read_texts(count, folder / "texts"), out, ENGLISH)
        return {"bytes": out.tell()}


def build_tokenizer_options() -> dict[str, Any]:
    """Return the options of bm25s.tokenize that give the words of English."""
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stemmer = Stemmer.Stemmer("english", 0)
    return {"token_pattern": r"(?u)\b\w\w+\b", "stopwords": STOPWORDS_EN, "stemmer": stemmer, "show_progress": False}


def build_alone(count: int, folder: Path) -> dict[str, float]:
    """As a plain script does, from a list of texts, and saved in the library's format."""
    import bm25s

    tokenized = bm25s.tokenize(list(read_texts(count, folder / "texts")), **build_tokenizer_options())
    engine = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float32")
    engine.index(tokenized, show_progress=False)
    engine.save(folder / "alone")
    return {"bytes": sum(file.stat().st_size for file in (folder / "alone").iterdir())}


def search(count: int, folder: Path) -> dict[str, float]:
    """Return the milliseconds of queries of five words of texts, one at a time, and the MB apart from mapped files."""
    texts = list(islice(read_texts(count, folder / "texts"), QUERIES))
    queries = [" ".join(random.Random(number).sample(text.split(), 5)) for number, text in enumerate(texts)]
    index = Bm25.from_archive(np.memmap(folder / "ours", np.uint8, "r"), ENGLISH)
    seconds = []
    for query in queries:
        started = time.perf_counter()
        index.search([query], DEPTH)
        seconds.append(time.perf_counter() - started)
    status = Path("/proc/self/status").read_text().splitlines()
    private = next(int(line.split()[1]) / 1000 for line in status if line.startswith("RssAnon:"))
    return {
        "p50": statistics.median(seconds) * 1000,
        "p95": sorted(seconds)[int(0.95 * QUERIES)] * 1000,
        "private": private,
    }


def compare(count: int, folder: Path) -> dict[str, float]:
    """Return how many terms have other postings than those of bm25s."""
    import bm25s

    index, engine = (
        Bm25.from_archive(np.memmap(folder / "ours", np.uint8, "r"), ENGLISH),
        bm25s.BM25.load(folder / "alone"),
    )
    data, indices, starts = (engine.scores[name] for name in ("data", "indices", "indptr"))
    terms = {term: number for term, number in engine.vocab_dict.items() if term}
    unequal = len(terms.keys() ^ index.terms.keys())
    for term, number in terms.items():
        positions, impacts = index.read_postings(index.terms[term])
        other = slice(*starts[number:][:2])
        unequal += not (np.array_equal(positions, indices[other]) and impacts.tobytes() == data[other].tobytes())
    return {"unequal": unequal, "terms": len(terms)}


ACTS: dict[str, Callable[[int, Path], dict[str, float]]] = {
    "write": write_texts,
    "build": build,
    "build_alone": build_alone,
    "search": search,
    "compare": compare,
}


def measured(name: str, count: int, folder: Path) -> dict[str, float]:
    """Return the figures of an act in a process of its own, with its seconds and its peak in MB."""
    command = [sys.executable, __file__, "--act", name, str(count), str(folder)]
    return dict(json.loads(subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--act", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.act:
        name, count, folder = asked.act
        started = time.perf_counter()
        figures = ACTS[name](int(count), Path(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        print(json.dumps(figures | {"seconds": time.perf_counter() - started, "peak": peak}))
        return
    with tempfile.TemporaryDirectory(prefix="benchbench-perf-") as name:
        folder = Path(name)
        for count in (10_000, COMPARED, 1_000_000)[: 3 if asked.million else 2]:
            measured("write", count, folder)  # a process begins with the peak of the one that starts it
            ours, found = measured("build", count, folder), measured("search", count, folder)
            print(
                f"{count:>9,} texts: built in {ours['seconds']:6.1f} s, peak {ours['peak']:5.0f} MB, "
                f"{ours['bytes'] / 1e6:5.0f} MB stored; searched in {found['p50']:.2f} ms (p95 {found['p95']:.2f}), "
                f"peak {found['peak']:.0f} MB, {found['private']:.0f} MB without mapped files",
                flush=True,
            )
            if count == COMPARED:
                alone = measured("build_alone", count, folder)
                equal = measured("compare", count, folder)
                print(
                    f"{'':>9} bm25s alone: {alone['seconds']:6.1f} s, peak {alone['peak']:5.0f} MB, "
                    f"{alone['bytes'] / 1e6:5.0f} MB stored; {equal['unequal']} of {equal['terms']:,} terms differ",
                    flush=True,
                )


if __name__ == "__main__":
    main()
