"""What a store must show before it is offered, despite its documentation; `docs/stores.md` has what each showed.

Each check takes a setting that looks at everything, raises AssertionError, and returns what the table says: "yes", or
the number that matters. Queries are held out: none is a vector that is stored.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from django.db import connection

from apps.retrieval.search import exact
from benchbench.ir.planning.ann import STORES as METHODS
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import recall
from tests.retrieval.arms import LEARNS, WIDEST, Arm, Vectors, lack_of, unit, version_of

ROOT = Path(__file__).parents[2]
COUNT, DIMENSION, QUERIES = 900, 32, 40
FALLS_BACK = ("faiss:hnsw",)  # to exact search, where a filter admits few
OPTIONS = {  # of each option a setting that looks little, and one that looks more
    "memory:compressed dimensions": ("compressed(dimensions=16)", "compressed()"),
    "memory:compressed precision": ("compressed(precision=binary, rescore=0)", "compressed(rescore=0)"),
    "memory:compressed rescore": ("compressed(precision=binary, rescore=0)", "compressed(precision=binary)"),
    "pgvector:hnsw m": ("hnsw(m=2, ef_search=10)", "hnsw(m=30, ef_search=10)"),
    "pgvector:hnsw ef_construction": (
        "hnsw(m=3, ef_construction=6, ef_search=30)",  # by .11 or more in 1,000 graphs
        "hnsw(m=3, ef_construction=400, ef_search=30)",
    ),
    "pgvector:hnsw ef_search": ("hnsw(ef_search=5)", "hnsw(ef_search=400)"),
    "pgvector:hnsw iterative": ("hnsw(ef_search=5)", "hnsw(ef_search=5, iterative=strict)"),
    "pgvector:hnsw storage": ("hnsw(ef_search=400, storage=binary)", "hnsw(ef_search=400)"),
    "pgvector:hnsw dimensions": ("hnsw(ef_search=400, dimensions=16)", "hnsw(ef_search=400)"),
    "pgvector:hnsw rescore": (
        "hnsw(ef_search=400, storage=binary)",
        "hnsw(ef_search=400, storage=binary, rescore=200)",
    ),
    "pgvector:ivfflat lists": ("ivfflat(lists=50)", "ivfflat(lists=2)"),
    "pgvector:ivfflat probes": ("ivfflat(lists=50, probes=1)", "ivfflat(lists=50, probes=50)"),
    "pgvector:ivfflat iterative": ("ivfflat(lists=200)", "ivfflat(lists=200, iterative=relaxed)"),
    "pgvector:ivfflat storage": ("ivfflat(lists=2, probes=2, storage=binary)", "ivfflat(lists=2, probes=2)"),
    "pgvector:ivfflat dimensions": ("ivfflat(lists=2, probes=2, dimensions=16)", "ivfflat(lists=2, probes=2)"),
    "pgvector:ivfflat rescore": (
        "ivfflat(lists=2, probes=2, storage=binary)",
        "ivfflat(lists=2, probes=2, storage=binary, rescore=200)",
    ),
    "chromadb:hnsw m": ("chromadb:hnsw(m=3, ef_search=10)", "chromadb:hnsw(m=40, ef_search=10)"),
    "chromadb:hnsw ef_construction": (
        "chromadb:hnsw(ef_construction=4, ef_search=10)",
        "chromadb:hnsw(ef_construction=400, ef_search=10)",
    ),
    "chromadb:hnsw ef_search": ("chromadb:hnsw(ef_search=10)", "chromadb:hnsw(ef_search=400)"),
    "faiss:hnsw m": ("faiss:hnsw(m=3)", "faiss:hnsw(m=32)"),
    "faiss:hnsw ef_construction": ("faiss:hnsw(m=8, ef_construction=4)", "faiss:hnsw(m=8, ef_construction=400)"),
    "faiss:hnsw ef_search": ("faiss:hnsw(m=8, ef_search=10)", "faiss:hnsw(m=8, ef_search=400)"),
    "faiss:hnsw storage": ("faiss:hnsw(ef_search=400, storage=int4)", "faiss:hnsw(ef_search=400)"),
    "faiss:hnsw rescore": (
        "faiss:hnsw(ef_search=400, storage=int4)",
        "faiss:hnsw(ef_search=400, storage=int4, rescore=100)",
    ),
    "faiss:ivfpq lists": ("faiss:ivfpq(lists=50, m=8)", "faiss:ivfpq(lists=2, m=8)"),
    "faiss:ivfpq probes": ("faiss:ivfpq(lists=50, m=8, probes=1)", "faiss:ivfpq(lists=50, m=8, probes=50)"),
    "faiss:ivfpq m": ("faiss:ivfpq(lists=2, m=2)", "faiss:ivfpq(lists=2, m=16)"),
    "faiss:ivfpq bits": ("faiss:ivfpq(lists=2, m=8, bits=4)", "faiss:ivfpq(lists=2, m=8, bits=8)"),
    "lancedb:ivfpq lists": ("lancedb:ivfpq(lists=3, m=16)", "lancedb:ivfpq(lists=1, m=16)"),
    "lancedb:ivfpq probes": ("lancedb:ivfpq(lists=3, m=16, probes=1)", "lancedb:ivfpq(lists=3, m=16, probes=3)"),
    "lancedb:ivfpq m": ("lancedb:ivfpq(m=2)", "lancedb:ivfpq(m=16)"),
}
REOPEN = """
import json, sys
from pathlib import Path
import numpy as np
from apps.retrieval.stores import STORES
from benchbench.ir.planning.ann import Ann
queries = np.load(sys.argv[1])
for line in sys.stdin:
    text, folder = json.loads(line)
    setting = Ann.parse(text)
    nominate = STORES[setting.store].open(Path(folder), setting).build_nominator(setting, None)
    print(json.dumps([nominate(query, 10).tolist() for query in queries]), flush=True)
"""


arms: dict[str, Arm] = {}


def arm(text: str) -> Arm:
    """An arm of the world that the checks share; 900 vectors of 32 dimensions, a ninetieth of them red."""
    if text not in arms:
        colours = [{"colour": "green" if position % 90 else "red"} for position in range(COUNT)]
        arms[text] = Arm(folder(), text, unit(COUNT, DIMENSION, 1), colours)
    return arms[text]


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="stores-"))


@cache
def queries() -> Vectors:
    return unit(QUERIES, DIMENSION, 2)


def share(text: str, depth: int = 10) -> float:
    """The mean recall of a setting."""
    lists = arm(text).search(queries(), depth)
    truth = exact.find_nearest(arm(text).vectors, queries(), depth)
    same = Ann.parse(text).rescores
    pairs = zip(lists, truth, strict=True)
    return float(np.mean([recall(one, another, depth, same_scores=same) for one, another in pairs]))


def looking_everywhere_finds_what_exact_search_finds(text: str) -> str:
    """To the bit. What keeps rounded vectors nominates everything for it."""
    depth = COUNT if any(text.startswith(name) for name in LEARNS) else 20
    assert arm(text).search(queries(), depth) == exact.find_nearest(arm(text).vectors, queries(), depth)
    assert not arm(text).view.notes
    return "yes"


def a_narrow_filter_returns_every_match(text: str) -> str:
    """All ten red ones, and the nearest three of them, of an arm at its defaults; where a store of FALLS_BACK itself
    finds fewer, they are searched exactly and the query is counted."""
    setting = Ann.parse(text)
    usual = str(Ann.parse(setting.name)) if f"{setting.store}:{setting.method}" not in LEARNS else text
    for depth in (3, 20):
        lists = arm(usual).search(queries(), depth, {"colour": "red"})
        red = np.array([one["colour"] == "red" for one in arm(usual).metadata])
        assert [len(one) for one in lists] == [min(depth, 10)] * QUERIES
        assert all(red[one.ids].all() for one in lists)
        if depth == 20:
            assert lists == exact.find_nearest(arm(usual).vectors, queries(), depth, mask=red)
    missed = len(arm(usual).view.notes["searched_exactly"])
    assert not missed or f"{setting.store}:{setting.method}" in FALLS_BACK, f"it missed some in {missed} of {QUERIES}"
    return f"{missed} of {QUERIES} exactly" if missed else "yes"


def each_option_changes_something(text: str) -> str:
    store, method = Ann.parse(text).store, Ann.parse(text).method
    name = f"{store}:{method}"
    options = [each for each in OPTIONS if each.startswith(f"{name} ")]
    assert {each.partition(" ")[2] for each in options} == set(METHODS[store][method]), "each option has a pair here"
    for option in options:
        little, more = OPTIONS[option]
        assert share(little) + 0.02 < share(more), option
    return ", ".join(each.partition(" ")[2] for each in options) or "none"


def a_handful_of_vectors_is_enough(text: str) -> str:
    """1, 2 and 7 of them; what learns from its vectors refuses so few by a sentence."""
    for count in (1, 2, 7):
        if missing := lack_of(text, count, DIMENSION):
            assert "chunks" in missing
            assert not lack_of(text, COUNT, DIMENSION)
            return "refused"
        with tempfile.TemporaryDirectory() as folder:
            few = Arm(Path(folder), text, unit(count, DIMENSION, 3))
            assert few.search(queries(), 5) == exact.find_nearest(few.vectors, queries(), 5)
            few.remove()
            del few
    return "yes"


def more_than_4096_are_returned(text: str) -> str:
    """4,500 of 5,000: as many as candidates may be asked for, and sqlite-vec stops at 4,096."""
    setting = Ann.parse(text)
    with tempfile.TemporaryDirectory() as folder:
        many = Arm(Path(folder), text, unit(5000, 8, 4))
        (hits,) = many.search(unit(1, 8, 5), 4500)
        (truth,) = exact.find_nearest(many.vectors, unit(1, 8, 5), 4500)
        many.remove()
        del many
    assert len(hits) > 4096
    if hits == truth:
        return "yes"
    assert not setting.compares_all
    return f"{len(hits):,} found" if len(hits) < 4500 else f"recall {recall(hits, truth, 4500):.3f}"


def a_restart_changes_nothing(text: str) -> str:
    """Another process finds the same; of pgvector another of PostgreSQL's, which a new connection begins."""
    if arm(text).index is not None:
        before = arm(text).search(queries(), 10)
        connection.close()
        assert arm(text).search(queries(), 10) == before
        return "yes"
    first = [
        arm(text).kept.collection.build_nominator(Ann.parse(text), None)(query, 10).tolist() for query in queries()
    ]
    assert reopened()[text] == first
    return "yes"


@cache
def reopened() -> dict[str, list[list[int]]]:
    """What another process finds by each arm, which takes a while to start."""
    file = folder() / "queries.npy"
    np.save(file, queries())
    texts = [text for text in WIDEST.values() if arm(text).index is None]
    lines = [json.dumps([text, str(arm(text).folder)]) for text in texts]
    requests = [sys.executable, "-c", REOPEN, str(file)]
    answer = subprocess.run(requests, input="\n".join(lines), capture_output=True, text=True, cwd=ROOT, check=False)
    assert answer.returncode == 0, answer.stderr
    return dict(zip(texts, map(json.loads, answer.stdout.splitlines()), strict=True))


def filled_again_it_is_the_same(text: str) -> str:
    """Whether two machines that fill it from the same vectors search the same; of exact ones it must be so.

    A graph, or pgvector's lists, is asked to look little, so that where it looks shows.
    """
    setting = Ann.parse(text)
    narrow = {"hnsw": f"{setting.name}(ef_search=10)", "ivfflat": "ivfflat(lists=20)"}.get(setting.method, text)
    with tempfile.TemporaryDirectory() as folder:
        again = Arm(Path(folder), narrow, arm(narrow).vectors)
        same = again.search(queries(), 10) == arm(narrow).search(queries(), 10)
        again.remove()
        del again
    assert same or not setting.compares_all
    return "yes" if same else "no"


CHECKS: dict[str, Callable[[str], str]] = {
    "looking everywhere finds what exact search finds": looking_everywhere_finds_what_exact_search_finds,
    "a narrow filter returns every match": a_narrow_filter_returns_every_match,
    "each option changes something": each_option_changes_something,
    "1, 2 and 7 vectors": a_handful_of_vectors_is_enough,
    "4,500 of 5,000": more_than_4096_are_returned,
    "the same after a restart": a_restart_changes_nothing,
    "the same when it is filled again": filled_again_it_is_the_same,
}


def table() -> str:
    """The table of docs/stores.md: what each method of each store showed, in Markdown, a line for each."""
    rows = [["method", "version", *(str(number) for number in range(1, len(CHECKS) + 1))]]
    rows.append(["---"] * len(rows[0]))
    for name, text in WIDEST.items():
        rows.append([f"`{name}`", version_of(name), *(check(text) for check in CHECKS.values())])
    answer = "".join(f"{number}. {message}\n" for number, message in enumerate(CHECKS, start=1))
    return f"{answer}\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)
