"""What is between two runs, told with the values, and when their numbers must not be compared at all."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.records.comparability import Comparability, find_differences
from apps.records.measuring.again import find_version, rescore
from apps.records.models import Benchmark, Evaluation, Run
from tests.created import run_benchmark
from tests.drafts import freeze_and_resolve, turn
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

MADE_BY: dict[str, Any] = {
    "git_revision": "a" * 40,
    "python": "3.11.9",
    "libraries": {"numpy": "2.4.0"},
    "device": "cpu",
    "settings": {"TIMEOUT": 60000},
    "rerankers": {"late-interaction": "m 1"},
}
PROVENANCE: dict[str, Any] = {
    "collection": {"id": "c", "name": "library", "fingerprint": "f" * 64},
    "index": {"name": "main", "version": 1, "content": "1" * 64, "encoder": "m", "encoder_revision": "r1"},
    "made_by": [MADE_BY],
}


@pytest.fixture
def mapping(db: None) -> Mapping:
    dataset = make_dataset({"pear": [({"document_id": "d1"}, 3)], "plum": [({"document_id": "d2"}, 2)]})
    return make_mapping(dataset, make_collection("library", [{"title": "On pears"}, {"title": "On plums"}]))


@pytest.fixture
def one(mapping: Mapping) -> Run:
    return run_of(make_benchmark(mapping, [0.5], name="first"))


def run_of(benchmark: Benchmark, **provenance: Any) -> Run:
    benchmark.runs.update(provenance=PROVENANCE | provenance)
    return benchmark.runs.get()


def second_run(mapping: Mapping, provenance: dict[str, Any] | None = None, **fields: Any) -> Run:
    return run_of(make_benchmark(mapping, [0.4], name="second", **fields), **(provenance or {}))


def about(result: Comparability) -> list[tuple[str, str]]:
    return [(difference.about, difference.severity) for difference in result.differences]


def test_runs_that_differ_in_nothing_else_are_comparable(one, mapping):
    differences = find_differences([one, second_run(mapping)])
    assert differences == Comparability(mapping.dataset_version, ())
    assert differences.comparable


def test_it_costs_two_queries_however_many_runs(mapping):
    runs = list(make_benchmark(mapping, [0.1] * 20).runs.all())
    with CaptureQueriesContext(connection) as queries:
        find_differences(runs)
    assert len(queries) == 2


@pytest.mark.parametrize(
    ("change", "subject", "message"),
    [
        ({"collection": {**PROVENANCE["collection"], "fingerprint": "e" * 64}}, "collection", "eeeeeeeeeeee"),
        ({"index": {**PROVENANCE["index"], "version": 2, "content": "2" * 64}}, "index", "v2 222222222222"),
        ({"index": {**PROVENANCE["index"], "encoder_revision": "r2"}}, "model", '"m" had different revisions: r1 ('),
        ({"made_by": [MADE_BY | {"git_revision": "b" * 40}]}, "code", "bbbbbbbbbbbb (dense"),
        ({"made_by": [MADE_BY | {"libraries": {"numpy": "2.5"}}]}, "numpy", "numpy: 2.4.0 (dense"),
        ({"made_by": [MADE_BY | {"settings": {"TIMEOUT": 1}}]}, "TIMEOUT", "different TIMEOUT: 60000 (dense"),
        ({"made_by": [MADE_BY | {"device": "cuda"}]}, "device", "Times cannot be compared."),
        ({"made_by": []}, "provenance", 'The software is not recorded for dense · top 10 of "second".'),
    ],
)
def test_it_warns_of_each_difference(one, mapping, change, subject, message):
    differences = find_differences([one, second_run(mapping, change)])
    assert about(differences) == [(subject, "warn")]
    assert message in differences.warnings[0]
    assert differences.comparable


def test_cores_matter_to_isolated_times_alone(mapping):
    two, eight = ([MADE_BY | {"processor": {"cores": n, "numpy_threads": n}}] for n in (2, 8))
    for way, expected in (("shared", []), ("isolated", [("cores", "warn")])):
        runs = [second_run(mapping, {"made_by": made_by}, execution=way) for made_by in (two, eight, [MADE_BY])]
        assert about(find_differences(runs)) == expected
        assert about(find_differences(runs[1:])) == [], "one does not state them"


def test_another_index_is_configuration_and_no_difference(one, mapping):
    chosen = {"index": {**PROVENANCE["index"], "name": "pieces", "content": "2" * 64}}
    assert about(find_differences([one, second_run(mapping, chosen)])) == []


def test_rules_of_words_matter_to_those_that_search_them(one, mapping):
    english = {"analyzer": {"language": "english", "words": "english"}}
    indexes = [
        {**PROVENANCE["index"], "name": name, "lexical": {"engine": "bm25", "parameters": parameters}}
        for name, parameters in (("before", {"stemmer": "english"}), ("after", english))
    ]
    one, two = (second_run(mapping, {"index": index}) for index in indexes)
    assert about(find_differences([one, two])) == []
    for run in (one, two):
        Run.objects.filter(pk=run.pk).update(config=run.config | {"search_mode": "sparse"})
    (answer,) = find_differences([one, two]).warnings
    assert "words by different rules: english, words=plain (" in answer
    Run.objects.filter(pk=two.pk).update(config=two.config | {"search_mode": "sparse", "lexical": "bm25(words=plain)"})
    assert about(find_differences([one, two])) == [], "the setting says it"


def test_a_reranker_matters_to_those_that_use_it(one, mapping):
    two = second_run(mapping, {"made_by": [MADE_BY | {"rerankers": {"late-interaction": "m 2"}}]})
    assert about(find_differences([one, two])) == []
    for run in (one, two):
        Run.objects.filter(pk=run.pk).update(config=run.config | {"use_reranker": True})
    (answer,) = find_differences([one, two]).warnings
    assert answer.startswith('The reranker "late-interaction" had different revisions: m 1 (dense')


def test_shared_and_isolated_times_do_not_compare(one, mapping):
    (answer,) = find_differences([one, second_run(mapping, execution="isolated")]).warnings
    assert answer.startswith('They were executed differently: shared (dense · top 10 of "first"), isolated (')


@pytest.mark.parametrize(("policy", "value"), [("unresolved", "drop"), ("empty_queries", "skip")])
def test_it_refuses_other_policies(one, mapping, policy, value):
    differences = find_differences([one, second_run(mapping, **{policy: value})])
    assert about(differences) == [(f"policy {policy}", "refuse")]
    assert value in differences.refusals[0]
    assert differences.version is None


def test_it_refuses_another_dataset(one):
    elsewhere = make_mapping(make_dataset({}, name="elsewhere"), make_collection("other"), name="other")
    differences = find_differences([one, second_run(elsewhere)])
    assert about(differences) == [("dataset", "refuse")]
    assert '"questions" (dense · top 10 of "first"), "elsewhere" (' in differences.refusals[0]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("failed", "failed: it has no values. Retry it"),
        ("cancelled", "was cancelled: it has no values. Resume it"),
        ("evaluating", "is not finished: it has no values. Wait for it"),
    ],
)
def test_runs_without_values_are_not_compared(one, mapping, status, message):
    two = second_run(mapping)
    Run.objects.filter(pk=two.pk).update(status=status)
    differences = find_differences([one, two])
    assert about(differences) == [("status", "refuse")]
    assert message in differences.refusals[0]


def test_it_warns_of_queries_that_only_some_answered(one, mapping):
    two = second_run(mapping)
    Evaluation.objects.filter(run=two).update(failed_queries=1, unsearched_queries=3)
    answer = find_differences([one, two]).warnings
    assert 'are over different queries: 0 failed (dense · top 10 of "first"), 1 failed (dense' in answer[0]
    assert "3 never asked" in answer[1]


def test_it_warns_of_as_many_queries_that_are_others(one, mapping):
    two = second_run(mapping)
    Evaluation.objects.update(failed_queries=1, values=[[None, 0.5]] * 8)
    assert find_differences([one, two]).warnings == []
    Evaluation.objects.filter(run=two).update(values=[[0.5, None]] * 8)
    (answer,) = find_differences([one, two]).warnings
    assert answer.startswith(
        "Their means are over different queries of the same number, because different queries failed."
    )


def test_re_resolved_mapping_is_refused_and_two_mappings_warn(one, mapping):
    two = second_run(mapping)
    Evaluation.objects.filter(run=two).update(truth_hash="x", unresolved_count=4)
    differences = find_differences([one, two])
    assert about(differences) == [("mapping", "refuse")]
    assert 'Re-score "first", "second" on version 1; this runs no searches.' in differences.refusals[0]
    neighbour = make_mapping(mapping.dataset, make_collection("beside"), name="beside")
    Benchmark.objects.filter(pk=two.benchmark_id).update(mapping=neighbour)
    differences = find_differences([one, two])
    assert about(differences) == [("mapping", "warn")]
    assert '"questions on library", 0 unresolved (dense' in differences.warnings[0]
    assert '"beside", 4 unresolved (dense' in differences.warnings[0]


def test_it_refuses_two_mappings_that_read_equal_collections_otherwise(one, mapping):
    alike = make_collection("a copy of it")
    neighbour = make_mapping(
        mapping.dataset, alike, name="beside", collection_fingerprint=mapping.collection_fingerprint
    )
    two = second_run(neighbour)
    assert about(find_differences([one, two])) == []
    Evaluation.objects.filter(run=two).update(truth_hash="x")
    differences = find_differences([one, two])
    assert about(differences) == [("mapping", "refuse")]
    assert (
        'but the mappings "questions on library" and "beside" resolve judgments to different ones.'
        in differences.refusals[0]
    )


def test_versions_are_refused_until_both_are_scored_on_one(library):
    def run(name: str) -> Benchmark:
        return run_benchmark(library, name=name, matrix={})

    first = run("first")
    turn(first)
    newer = freeze_and_resolve(library)
    runs = [first.runs.get(), run("second").runs.get()]
    differences = find_differences(runs)
    assert about(differences) == [("dataset version", "refuse")]
    assert differences.refusals[0].startswith("They were measured on different versions: questions v1 (dense")
    assert differences.refusals[0].endswith('Re-score "first" on version 2; this runs no searches.')

    rescore(first)
    assert find_differences(runs) == Comparability(newer, ())
    refused = find_differences(runs, version=find_version(first, 1)).refusals
    assert refused[0].endswith("Compare them on version 2, on which all have values.")
    assert Query.objects.count() == 12


def test_nothing_is_comparable_with_nothing(db):
    assert find_differences([]).version is None
