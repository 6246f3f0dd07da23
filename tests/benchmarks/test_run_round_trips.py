"""A file of rankings, imported as a run and exported, states the same rankings; and imported again, the same run."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.benchmarks.external.importing import import_runs
from apps.benchmarks.models import Evaluation
from apps.results.exporting import export
from benchbench.files.flowbaby import written_run
from benchbench.files.runs import read_run_file
from benchbench.ir.canonical import RunEntry
from tests.factories import make_dataset
from tests.files.samples import write_file

QUERIES = ("q1", "q2", "é")
# Ids that sort differently as text, as bytes of UTF-8 and as UTF-16, and of which one begins another.
DOCUMENTS = ("d1", "d10", "d2", "D1", "é", "文書", "～", "😀", "-", "MED-1")
# Scores that are equal, equal as float32 alone, beyond float32, below its least; falling as doubles.
SCORES = (1e300, 2e39, 1e39, 16777217.0, 16777216.0, 1.00000001, 1.0, 1.0, 0.5, 1e-46, 0.0, -0.0, -7.25, -1e300)


def trec(seed: int) -> str:
    """Lines of all queries, mixed, with ranks that say nothing."""
    draw = random.Random(seed)
    lines = [
        f"{query} Q0 {document} {draw.randint(1, 9)} {draw.choice(SCORES)!r} made\n"
        for query in (*QUERIES, "unknown")
        for document in draw.sample(DOCUMENTS, draw.randint(1, len(DOCUMENTS)))
    ]
    draw.shuffle(lines)
    return "".join(lines)


def flowbaby(seed: int) -> str:
    """Entries whose ranks and scores agree, of all queries, mixed."""
    draw = random.Random(seed)
    entries = []
    for query in (*QUERIES, "unknown"):
        items = draw.sample(DOCUMENTS, draw.randint(1, len(DOCUMENTS)))
        scores = sorted((draw.choice(SCORES) for _ in items), reverse=True)
        entries += map(RunEntry, [query] * len(items), items, range(1, len(items) + 1), scores)
    draw.shuffle(entries)
    return "".join(written_run("made", entries))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("format", "name", "made"), [("trec-run", "a.run", trec), ("flowbaby-run", "b.json", flowbaby)]
)
def test_the_rankings_are_the_same(format: str, name: str, made: Callable[[int], str], tmp_path: Path) -> None:
    dataset = make_dataset({key: [({"document_id": "d1"}, 1), ({"document_id": "é"}, 2)] for key in QUERIES})

    def stated(path: Path) -> dict[str, list[str]]:
        return {query: list(ranked.documents) for query, ranked in read_run_file(path, QUERIES).rankings.items()}

    for seed in range(5):
        first = write_file(tmp_path / name, made(seed))
        ((run, _),) = import_runs([first], dataset=dataset).runs
        second = write_file(tmp_path / f"again {name}.gz", "".join(map(str, export(run, format))))
        assert stated(second) == stated(first)
        assert len(stated(first)) == len(QUERIES)
        ((again, _),) = import_runs([second], dataset=dataset).runs
        one, other = (Evaluation.objects.get(run=each) for each in (run, again))
        assert one.means == other.means
