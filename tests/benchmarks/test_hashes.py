"""What identifies rankings on any site."""

import json
from hashlib import sha256

import numpy as np

from apps.benchmarks.launching import launch
from apps.benchmarks.measuring.hashes import hash_of_rankings
from apps.benchmarks.models import Run
from apps.mappings.models import Mapping
from apps.operations.working import wait
from tests.created import create_benchmark

RANKINGS = [
    ('k"1', 1, ["é\n☃", 'a "quoted" \\ one', ""], [0.5, 0.25, 1 / 3]),
    ("é", 2, None, []),
    ("z", 1, [], []),
]


def told(key: str, repetition: int, ids: list[str] | None, scores: list[float]) -> bytes:
    return json.dumps([key, repetition, ids]).encode() + b"\n" + np.array(scores, "<f8").tobytes()


def test_rankings_are_hashed_as_json_and_the_bytes_of_their_scores() -> None:
    """Manifests hold such hashes: how they are computed may change, and they may not."""
    assert hash_of_rankings(RANKINGS) == sha256(b"".join(told(*one) for one in RANKINGS)).hexdigest()


def test_that_of_a_run_is_of_what_it_returns_of_the_lists_that_it_shares(library: Mapping) -> None:
    matrix = {"search_modes": ["hybrid"], "top_k_values": [20, 30], "score_thresholds": [None, 0.9]}
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    wait(launch(benchmark))
    names = dict(library.collection.documents.values_list("pk", "external_id"))
    hashes = set()
    for run in Run.objects.filter(benchmark=benchmark):
        rows = run.query_results.order_by("query__key", "repetition").select_related("query")
        whole = b"".join(
            told(row.query.key, row.repetition, [names[one] for one in row.document_ids], row.scores) for row in rows
        )
        hashes.add(run.provenance["rankings"])
        assert run.provenance["rankings"] == sha256(whole).hexdigest()
    assert len(hashes) == 3  # the threshold leaves less than either depth
