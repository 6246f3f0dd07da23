"""The rules of a gate are read, and a run is held against the baseline that someone chose."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from apps.execution.launching import delete_benchmark
from apps.records.models import Baseline, Benchmark
from apps.verdicts.gates.baselines import BaselineError, approve, find_baseline, load_baseline_names, retire
from apps.verdicts.gates.rules import RulesError, read_rules
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.measures import Measure
from benchbench.ir.profiles import Mean
from benchbench.ir.rules import Change, Floor, MustNotFail, Rules
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

DOCS = Path(__file__).resolve().parents[2] / "docs" / "gates.md"


def test_it_reads_every_kind_of_rule():
    rules = read_rules(
        """
        alpha: 0.01
        floors: {Recall@5: .7, mrr: 0.8, P@5: {at_least: .6, mean: weighted}}
        slices:
          "category: api": {minimum_queries: 20, nDCG@10: 0.5}
        against_baseline:
          nDCG@10: {may_lose: 1e-2}
          map@10: {must_gain: 0}
        must_not_fail:
          - {queries: [q1, 017, no], relevant_in_top: 3}
          - {queries: [q2], measure: RR, at_least: 0.5}
        false_answers: {at_most: 0.2}
        latency_ms: {mean: 50, p95: 120}
        coverage: {Judged@10: 0.9, failed_queries: 3}
        runs_may_fail: true
        """
    )
    ndcg = Measure("nDCG", 10)
    assert rules == Rules(
        floors=(
            Floor(Measure("R", 5), 0.7),
            Floor(Measure("RR"), 0.8),
            Floor(Measure("P", 5), 0.6, mean=Mean.WEIGHTED),
            Floor(ndcg, 0.5, "category: api", 20),
            Floor(Measure("Judged", 10), 0.9),
        ),
        changes=(Change(ndcg, may_lose=0.01), Change(Measure("AP", 10), must_gain=0.0)),
        must_not_fail=(
            MustNotFail(("q1", "017", "no"), Measure("Success", 3), 1.0),
            MustNotFail(("q2",), Measure("RR"), 0.5),
        ),
        false_answers=0.2,
        latency_ms=(("mean", 50.0), ("p95", 120.0)),
        failed_queries=3,
        runs_may_fail=True,
        alpha=0.01,
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "gate.yaml has no rule: give at least one of floors, slices"),
        ("{}", "has no rule"),
        ("alpha: 0.05", "has no rule"),
        ("- a", "gate.yaml must be an object, not a list"),
        ("floors: [", "gate.yaml, line 1 cannot be read as YAML: "),
        ("a: &x [*x]", r"gate\.yaml, a\[0\] is an alias: write out its value"),
        ("floor: {mrr: 1}", "has the unknown key 'floor': choose one of floors, slices"),
        ("floors: {mrr: 0.5}\nfloors: {mrr: 0.9}", "gate.yaml, floors occurs twice, the second time in line 2"),
        ("floors: {recal@5: 0.5}", "recal"),
        ("floors: {recall: 0.5}", "needs a cutoff"),
        ("floors: {FirstRelevant: 3}", "floors.FirstRelevant cannot be a rule: FirstRelevant falls as a run improves"),
        ("floors: {mrr: 80}", "floors.mrr must be a number from 0 to 1, not 80"),
        (
            "floors: {mrr: {at_least: 0.5, mean: plain}}",
            "floors.mrr.mean must be one of benchmark, macro, weighted, not",
        ),
        ("floors: {mrr: {mean: macro}}", "floors.mrr is missing the key at_least"),
        ("floors: {mrr: {most: 1}}", "floors.mrr has the unknown key 'most': choose one of at_least, mean"),
        ("floors: {mrr: high}", "floors.mrr.at_least must be a number from 0 up, not .high"),
        ("floors: {mrr: .nan}", "floors.mrr.at_least must be a number from 0 up, not ..nan"),
        ("floors: {mrr: nan}", "floors.mrr.at_least must be a number from 0 up, not .nan"),
        ('floors: {mrr: "0.5"}', 'floors.mrr.at_least must be a number from 0 up, not "0.5"'),
        ("floors: {mrr: -1}", "floors.mrr.at_least must be a number from 0 up, not -1"),
        ("floors: {mrr: }", "floors.mrr is missing the key at_least"),
        ("slices: {hard: {minimum_queries: 3}}", "slices.hard must have at least one measure"),
        (
            "slices: {hard: {minimum_queries: 0, mrr: 0.5}}",
            "slices.hard.minimum_queries must be a whole number from 1 to",
        ),
        ("slices: {hard: {mrr: high}}", "slices.hard.mrr.at_least must be a number from 0 up"),
        ("against_baseline: {mrr: 0.1}", "against_baseline.mrr must be an object, not a number"),
        ("against_baseline: {mrr: {may_lose: 2}}", "against_baseline.mrr must be a number from 0 to 1, not 2"),
        ("against_baseline: {mrr: {may_lose: 0.1, must_gain: 0.1}}", "either may_lose or must_gain"),
        ("against_baseline: {mrr: {}}", "either may_lose or must_gain"),
        ("must_not_fail: {queries: [q1]}", "must_not_fail must be a list"),
        ("must_not_fail: [{queries: q1, relevant_in_top: 3}]", r"must_not_fail\[0\]\.queries must be a list"),
        (
            "must_not_fail: [{queries: [], relevant_in_top: 3}]",
            r"must_not_fail\[0\]\.queries is empty: give a query",
        ),
        (
            "must_not_fail: [{queries: [1.5], relevant_in_top: 3}]",
            r"must_not_fail\[0\]\.queries\[0\] must be a string, not a number",
        ),
        ("must_not_fail: [{queries: [q1]}]", "either relevant_in_top, or measure and at_least"),
        ("must_not_fail: [{queries: [q1], relevant_in_top: 1000001}]", "a whole number from 1 to 1,?000,?000"),
        ("false_answers: 0.1", "false_answers must be an object, not a number"),
        ("false_answers: {}", "false_answers is missing the key at_most"),
        ("latency_ms: {p90: 10}", "latency_ms.p90 must be one of mean, p50, p95, p99, not"),
        ("coverage: {mrr: 0.5}", "coverage.mrr is not allowed here: use Judged@k or failed_queries"),
        ("coverage: {failed_queries: 1.5}", "coverage.failed_queries must be a whole number from 0 up"),
        ("runs_may_fail: true", "has no rule"),
        ("floors: {mrr: 0.5}\nruns_may_fail: yes", "runs_may_fail must be true or false, not a string"),
        ("floors: {mrr: 0.5}\nalpha: 0", "alpha must be a number from 0.0001 to 0.5, not 0"),
        ("? [a]\n: 1", "gate.yaml has a key that is not a text"),
        ("x" * 100_001, "at most 100,000"),
    ],
)
def test_rule_errors_name_the_problem_and_its_place(text, error):
    with pytest.raises(RulesError, match=error) as caught:
        read_rules(text)
    assert caught.value.message.startswith("gate.yaml")


def test_the_examples_of_the_docs_are_rules():
    examples = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert examples
    assert read_rules(examples[0]).changes


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_benchmark(make_mapping(make_dataset({"q": []}), make_collection()), [0.5, 0.6, None])


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", is_staff=True)


def test_the_newest_approval_of_a_name_is_current(benchmark, ada):
    first, second, _ = benchmark.runs.all()
    old = approve(first, name="main", reason="The release of May.", by=ada)
    another = approve(first, name="lexical", reason="What BM25 does.", by=ada)
    new = approve(second, name=" main ", reason="The release of June.", by=ada)
    old.refresh_from_db()
    assert (old.retired_by, new.retired_at, new.approved_by, new.name) == (ada, None, ada, "main")
    assert old.retired_at is not None
    dataset = benchmark.dataset_version.dataset
    assert find_baseline("main", dataset) == new
    assert find_baseline(str(another.pk), dataset) == another
    assert load_baseline_names(benchmark) == {first.pk: ["lexical"], second.pk: ["main"]}


def test_only_a_completed_run_with_a_reason_is_approved(benchmark, ada):
    good, _, failed = benchmark.runs.all()
    with pytest.raises(BaselineError, match="is failed: only a completed run"):
        approve(failed, name="main", reason="Because.", by=ada)
    with pytest.raises(BenchbenchError, match="needs a reason"):
        approve(good, name="main", reason="  ", by=ada)
    approve(good, name="main", reason="Because.", by=ada)
    with pytest.raises(BaselineError, match="already"):
        approve(good, name="main", reason="Again.", by=ada)
    assert Baseline.objects.filter(retired_at=None).count() == 1


def test_it_is_retired_once_and_then_not_found(benchmark, ada):
    baseline = approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    retire(baseline, by=ada)
    assert baseline.retired_by == ada
    with pytest.raises(BaselineError, match="already retired"):
        retire(baseline, by=ada)
    for labelled in ("main", str(baseline.pk), "other"):
        with pytest.raises(BenchbenchError, match="has no current baseline"):
            find_baseline(labelled, baseline.dataset)


def test_benchmark_with_a_baseline_run_cannot_be_deleted(benchmark, ada):
    approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=ada)
    with pytest.raises(ConflictError, match="baseline"):
        delete_benchmark(benchmark)
