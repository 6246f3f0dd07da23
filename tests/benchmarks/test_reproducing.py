"""A manifest: what was run, and a second run of it that finds the same to the last bit."""

import io
import json
from copy import deepcopy
from importlib.metadata import version
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection
from apps.datasets.editing.drafts import freeze
from apps.datasets.models import Dataset
from apps.execution.launching import cancel, launch
from apps.experiments.manifests import ManifestError, build_manifest
from apps.experiments.reproducing import reproduce
from apps.experiments.verifying import verify
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.models import Operation
from apps.operations.working import perform_batch, wait
from apps.records.measuring.measures import add_measures
from apps.records.models import Benchmark, Evaluation
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from benchbench.errors import BenchbenchError
from benchbench.reading import strict_yaml
from tests.benchmarks.figures import run_key
from tests.commands import output_of
from tests.created import create_benchmark, finish, run_benchmark
from tests.drafts import set_judgment
from tests.kept import made_once
from tests.library import ENCODER, make_library

MATRIX = {
    "search_modes": ["dense", "sparse", "hybrid"],
    "use_reranker": [False, True],
    "top_k_values": [20],
    "score_thresholds": [None, 0.3],
}


def run(mapping: Mapping, *, matrix: dict[str, Any] = MATRIX, **options: Any) -> Benchmark:
    return run_benchmark(mapping, name="Which?", matrix=matrix, **options)


@made_once
def make_sparse() -> Benchmark:
    return run(make_library(), matrix={"search_modes": ["sparse"]})


@pytest.fixture
def manifest(transactional_db: None) -> dict[str, Any]:
    """That of a benchmark of one run, by words."""
    return build_manifest(make_sparse())


def again(manifest: dict[str, Any]) -> Benchmark:
    """Run a manifest as it comes out of a file."""
    return finish(reproduce(json.loads(json.dumps(manifest))))


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_a_second_run_of_a_manifest_reproduces_every_value(transactional_db, execution):
    first = run(make_library(queries=4), execution=execution, runs_per_query=2, seed=5)
    second = again(build_manifest(first))
    verification = verify(second)
    assert verification.differences == verification.environment == ()
    assert verification.sentence == "Reproduces every figure of “Which?”: 180 means in 12 runs."
    assert run_key(second) == run_key(first)
    assert (second.execution, second.seed, second.runs_per_query) == (execution, 5, 2)
    assert second.name == "Which?, again"


def test_manifest_finds_equal_data_under_other_ids_and_names(library):
    """As on another site: everything is imported and built again, and the first is gone."""
    manifest = build_manifest(run(library))
    for model in (Benchmark, Mapping, Dataset, Index, Collection):
        for row in model.objects.all():
            if model is Index:
                row.chunk_set.chunks.all().delete()
            row.delete()
    mapping = make_library()
    for name, row in (("fruit", mapping.dataset), ("shelf", mapping.collection), ("fruit on shelf", mapping)):
        type(row).objects.filter(pk=row.pk).update(name=name)
    Index.objects.update(name="by words")
    verification = verify(again(manifest))
    assert verification.reproduces, verification.differences


def test_manifest_uses_its_named_version_and_index_despite_newer(library):
    first = run(library, matrix=MATRIX | {"indexes": ["keywords"]})
    wait(build_index(create_index(library.collection, name="keywords", encoder=ENCODER.replace(",peach", ""))))
    revise(library)
    second = again(build_manifest(first))
    assert second.dataset_version.number == 1
    assert {run.index.version for run in second.runs.select_related("index")} == {1}
    assert verify(second).reproduces


def revise(library: Mapping) -> None:
    """Turn the first query's judgment around, and make that the next version."""
    query = library.dataset.queries.order_by("key").first()
    judgment = query.judgments.order_by("pk").first()
    set_judgment(library.dataset, query.key, judgment.doc_ref, 0 if judgment.grade else 3)
    freeze(library.dataset)
    resolve(library)
    library.refresh_from_db()


def test_verification_lists_the_differences(manifest):
    second = again(manifest)
    answer = second.manifest["runs"][0]
    answer["result"]["means"]["nDCG@10"] = 0.25
    answer["made_by"][0]["libraries"]["numpy"] = "1.0"
    second.manifest["runs"].append({**answer, "label": "dense", "config_hash": "f" * 16})
    verification = verify(second)
    assert not verification.reproduces
    changed, missing = verification.differences
    assert "nDCG@10 was 0.25, is 0." in changed
    assert missing == "dense: the benchmark lacks this run."
    assert verification.environment == (f"numpy was 1.0, is {version('numpy')}",)
    answer["result"]["means"] = dict(Evaluation.objects.get(run__benchmark=second).means)
    answer["result"]["queries"] += 1
    assert "queries in the means were" in verify(second).differences[0]


def test_a_measure_that_was_added_since_differs_from_nothing(manifest):
    second = again(manifest)
    before = verify(second)
    add_measures(second, ["ERR@10"])
    second.refresh_from_db()
    assert "ERR@10" in second.measures
    assert verify(second) == before
    assert before.reproduces
    assert before.sentence.endswith(" means in 1 run.")


def test_a_run_that_failed_then_is_expected_to_fail(library, tmp_path):
    manifest = build_manifest(run(library, matrix={"use_reranker": [False, True], "rerankers": [str(tmp_path)]}))
    assert [one["result"] is None for one in manifest["runs"]] == [False, True]
    second = again(manifest)
    assert verify(second).reproduces
    assert "in 1 run; 1 completed neither then nor now." in verify(second).sentence
    second.manifest["runs"][1]["result"] = second.manifest["runs"][0]["result"]
    (answer,) = verify(second).differences
    assert "then it completed, here it failed (Every query failed" in answer


def test_where_nothing_completed_nothing_is_reproduced(library, tmp_path):
    first = run(library, matrix={"use_reranker": [True], "rerankers": [str(tmp_path)]})
    verification = verify(again(build_manifest(first)))
    assert not verification.differences
    assert not verification.reproduces
    assert verification.sentence == "Nothing to compare with “Which?”: no run of it completed, then or now."


UNFIT: list[tuple[str, dict[str, Any], str]] = [  # a part of a manifest, what is changed of it, and what is said then
    ("dataset", {"content_hash": "0" * 64}, "the dataset version of the experiment was not found"),
    ("dataset", {"content_hash": "0" * 64, "name": "elsewhere"}, "the dataset of the experiment was not found"),
    ("collection", {"fingerprint": "0" * 64}, "library. has other documents"),
    ("collection", {"fingerprint": "0" * 64, "documents": "many"}, "instead of many: import those that"),
    ("collection", {"fingerprint": "0" * 64, "name": "elsewhere"}, "the collection of the experiment was not found"),
    ("mapping", {"truth_hash": "0" * 64}, "other documents than"),
    ("indexes.0", {"name": "x", "content": "0" * 64}, "no index like"),
    ("indexes.0", {"encoder": "gone", "content": "0" * 64}, "encoder is keyword:.*was gone"),
    ("", {"schema": "else"}, "has no .schema"),
    ("", {"schema_version": "9"}, "schema_version"),
    ("", {"matrix": []}, "matrix must be an object, not a list"),
    ("", {"runs": [{"label": "x"}]}, r"runs\[0\] is missing the key config_hash"),
    ("mapping", {"truth_hash": 1}, "mapping.truth_hash must be a string, not a number"),
    ("runs.0.made_by.0", {"libraries": []}, r"runs\[0\].made_by\[0\].libraries must be an object, not a list"),
    ("matrix", {"search_modes": ["guess"]}, "search_modes"),
]


def test_manifest_with_missing_parts_is_rejected_by_name(manifest):
    for position, change, message in UNFIT:
        changed = piece = deepcopy(manifest)
        for key in filter(None, position.split(".")):
            piece = piece[int(key) if key.isdigit() else key]
        piece |= change
        with pytest.raises(BenchbenchError, match=f"(?i){message}"):
            reproduce(changed)
    assert Benchmark.objects.count() == 1, "nothing is made where anything is wrong"
    Mapping.objects.update(collection=Collection.objects.create(name="other"))
    with pytest.raises(ManifestError, match="is not mapped to the collection"):
        reproduce(manifest)


def test_manifest_finds_only_data_visible_to_the_owner(manifest, django_user_model):
    mara, ann = (django_user_model.objects.create_user(name, is_staff=True) for name in ("mara", "ann"))
    Dataset.objects.update(owner=ann)
    with pytest.raises(ManifestError, match="The dataset of the experiment was not found"):
        reproduce(manifest, owner=mara)
    assert reproduce(manifest, owner=ann).owner == ann


def test_unfinished_benchmark_has_no_manifest_or_verification(library):
    benchmark = create_benchmark(library, name="b", matrix={})
    with pytest.raises(ManifestError, match="is pending"):
        build_manifest(benchmark)
    with pytest.raises(ManifestError, match="was not run from an experiment file"):
        verify(benchmark)
    finish(benchmark)
    with pytest.raises(ManifestError, match="is pending: wait"):
        verify(reproduce(build_manifest(benchmark)))


def test_the_provenance_of_a_run_is_complete(library):
    (index,) = build_manifest(run(library))["indexes"]
    assert (index["encoder"], index["strategy"], index["lexical"]["engine"]) == (ENCODER, "flat", "bm25")
    for one in library.benchmarks.get().runs.all():
        recognised = one.provenance
        assert recognised["dataset"]["content_hash"] == library.dataset_version.content_hash
        assert recognised["collection"]["fingerprint"] == library.collection_fingerprint
        assert recognised["index"]["content"] == index["content"]
        (made_by,) = recognised["made_by"]
        assert made_by["settings"]["BENCHBENCH_QUERY_TIMEOUT_MS"] == 60_000
        assert {"libraries", "device", "git_revision", "rerankers", "postgresql"} <= made_by.keys()


def test_manifest_names_all_workers_including_those_before_cancel(library):
    benchmark = create_benchmark(library, name="b", matrix={"search_modes": ["sparse"]})
    batch = launch(benchmark).batches.order_by("ordinal").first()
    perform_batch(batch.pk, owner="test")
    batch.refresh_from_db()
    batch.result["made_by"]["device"] = "another"
    batch.save(update_fields=["result"])
    cancel(benchmark)
    wait(launch(benchmark))
    assert Operation.objects.filter(subject_id=benchmark.pk).count() == 2
    assert [made_by["device"] for made_by in benchmark.runs.get().provenance["made_by"]] == ["another", "cpu"]
    assert any("Workers with different" in warning for warning in benchmark.runs.get().warnings)


def test_command_reruns_a_manifest_and_fails_on_differences(manifest, tmp_path):
    file = tmp_path / "which.experiment.yaml"
    file.write_text(strict_yaml.dump(manifest))
    assert "Reproduces every figure of “Which?”" in output_of("reproduce", file)

    manifest["runs"][0]["result"]["means"]["RR"] = 2
    file.write_text(strict_yaml.dump(manifest))
    out = io.StringIO()
    with pytest.raises(CommandError, match="Differs from “Which\\?” in 1 of its 1 run"):
        call_command("reproduce", str(file), json=True, stdout=out)
    assert json.loads(out.getvalue())["verification"]["reproduces"] is False
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("reproduce", str(tmp_path / "none.yaml"))
