"""What identifies rankings on any site."""

import json
import struct
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from apps.benchmarks.launching import launch
from apps.benchmarks.measuring import hashes
from apps.benchmarks.measuring.first_hashes import first_rankings_hashes, hash_of_rankings
from apps.benchmarks.measuring.hashes import rankings_hashes
from apps.benchmarks.models import BatchValues, Benchmark, ListSource, QueryResult, Run, StageList
from apps.benchmarks.repeating.manifests import manifest_of
from apps.benchmarks.repeating.reproducing import benchmark_from
from apps.benchmarks.repeating.verifying import verify
from apps.benchmarks.running import finishing
from apps.mappings.models import Mapping
from apps.operations.working import wait
from tests.created import create_benchmark

RANKINGS = [
    ('k"1', 1, ["é\n☃", 'a "quoted" \\ one', ""], [0.5, 0.25, 1 / 3]),
    ("é", 2, None, []),
    ("z", 1, [], []),
]
MATRIX = {"search_modes": ["hybrid"], "top_k_values": [20, 30], "score_thresholds": [None, 0.9]}


def told(key: str, repetition: int, ids: list[str] | None, scores: list[float]) -> bytes:
    return json.dumps([key, repetition, ids]).encode() + b"\n" + np.array(scores, "<f8").tobytes()


def test_at_first_rankings_were_hashed_as_json_and_the_bytes_of_their_scores() -> None:
    """Manifests of version 1.0 hold such hashes: how they are computed may change, and they may not."""
    assert hash_of_rankings(RANKINGS) == sha256(b"".join(told(*one) for one in RANKINGS)).hexdigest()


@pytest.fixture
def ended(library: Mapping) -> Benchmark:
    """Three runs that cut one list."""
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    return benchmark


def rows_of(run: Run) -> Iterator[tuple[QueryResult, list[str]]]:
    """Yield what the run returns of each query, with the external ids."""
    names = dict(run.benchmark.mapping.collection.documents.values_list("pk", "external_id"))
    for row in sorted(run.query_results.select_related("query"), key=lambda row: (row.query.key, row.repetition)):
        yield row, [names[one] for one in row.document_ids]


def test_at_first_that_of_a_run_was_of_all_its_rankings(ended: Benchmark) -> None:
    made = first_rankings_hashes(ended.runs.all())
    for run in ended.runs.all():
        whole = b"".join(told(row.query.key, row.repetition, ids, row.scores) for row, ids in rows_of(run))
        assert made[run.pk] == sha256(whole).hexdigest()
    assert len(set(made.values())) == 3  # the threshold leaves less than either depth


def digest(key: str, repetition: int, ids: list[str] | None, scores: list[float]) -> bytes:
    """As docs/reproducing.md has it."""
    line = json.dumps([key, repetition]).encode() + b"\n"
    if ids is None:
        return sha256(line + b"null").digest()
    ranked = zip(ids, scores, strict=True)
    return sha256(
        line + b"".join(sha256(one.encode()).digest()[:16] + struct.pack("<d", score) for one, score in ranked)
    ).digest()


def test_that_of_a_run_is_of_the_digests_of_what_it_returns(ended: Benchmark) -> None:
    bad = StageList.objects.filter(lengths__isnull=False).first()
    assert bad
    StageList.objects.filter(pk=bad.pk).update(error="too late")
    for run, made in rankings_hashes(ended.runs.all()).items():
        run = Run.objects.get(pk=run)
        whole = b"".join(
            digest(row.query.key, row.repetition, None if row.error else ids, row.scores) for row, ids in rows_of(run)
        )
        assert made == f"2:{sha256(whole).hexdigest()}"


def test_it_is_the_same_whether_batches_kept_digests_or_not(
    library: Mapping, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.BENCHBENCH_BATCH_SECONDS = 0.001
    monkeypatch.setattr(finishing, "forget_values", lambda runs: None)
    benchmark = create_benchmark(library, name="b", matrix=MATRIX)
    wait(launch(benchmark))
    kept = {run.pk: run.provenance["rankings"] for run in benchmark.runs.all()}
    assert len(set(kept.values())) == 3
    with monkeypatch.context() as patched:
        patched.delattr(hashes, "stored_lists")
        assert rankings_hashes(benchmark.runs.all()) == kept
    of_a_batch = BatchValues.objects.filter(batch=BatchValues.objects.first().batch_id)
    of_a_batch.update(digests=None)  # as code before kept them
    assert rankings_hashes(benchmark.runs.all()) == kept
    BatchValues.objects.all().delete()
    assert rankings_hashes(benchmark.runs.all()) == kept


def test_a_manifest_of_version_1_is_repeated_by_hashes_of_that_version(ended: Benchmark) -> None:
    manifest = manifest_of(ended) | {"schema_version": "1.0"}
    first = {run.config_hash: made for run, made in by_run(first_rankings_hashes(ended.runs.all()))}
    for run in manifest["runs"]:
        assert run["result"]["rankings"].startswith("2:")
        run["result"]["rankings"] = first[run["config_hash"]]
    again = benchmark_from(manifest)
    wait(launch(again))
    again.refresh_from_db()
    assert verify(again).reproduces
    assert {run.provenance["rankings"] for run in again.runs.all()} == set(first.values())
    assert manifest_of(again)["runs"][0]["result"]["rankings"] in first.values()


def by_run(hashes: dict[Any, str]) -> list[tuple[Run, str]]:
    return [(Run.objects.get(pk=pk), made) for pk, made in hashes.items()]


def test_a_run_without_a_stored_list_has_one_too(library: Mapping) -> None:
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    run.source = ListSource.objects.create(benchmark=run.benchmark, key="made up")
    assert rankings_hashes([run]) == {run.pk: f"2:{sha256().hexdigest()}"}
