"""Runs held against rules and a baseline, from stored rankings to the verdict."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.records.measuring.evaluating import evaluate_runs
from apps.records.models import Evaluation, GateOutcome, Run
from apps.verdicts.gates.gating import GateError, gate
from apps.verdicts.gates.reports import render_markdown
from apps.verdicts.gates.rules import read_rules
from benchbench.ir.gate import CheckReport, Outcome
from tests.benchmarks.gated import BEST, GOOD, POOR, make_gated, pinned, search
from tests.factories import add_version, make_benchmark, make_dataset, make_mapping

PASSED, FAILED, UNDECIDED = Outcome.PASSED, Outcome.FAILED, Outcome.UNDECIDED


@pytest.fixture
def mapping(db: None) -> Mapping:
    return make_gated()


def checks(result: Any) -> dict[str, CheckReport]:
    [verdict] = result.verdicts
    return {check.name: check for check in verdict.checks}


def test_best_run_is_judged_by_stored_values_and_rankings(mapping):
    benchmark = search(mapping, POOR, GOOD)
    rules = read_rules(
        """
        floors: {mrr: 0.7, Success@1: 0.5, nDCG@3: 0.7}
        slices: {hard: {minimum_queries: 2, mrr: 1}, "difficulty: high": {mrr: 0.1}}
        must_not_fail:
          - {queries: [q01, q11], relevant_in_top: 1}
        false_answers: {at_most: 0.5}
        latency_ms: {mean: 20, p95: 20}
        coverage: {Judged@1: 0.4, failed_queries: 0}
        """
    )
    result = gate(benchmark, rules=rules)
    actual = checks(result)
    assert result.verdicts[0].run.run_order == 2
    assert result.run_selection == "the best of 2 completed runs by nDCG@10"
    assert actual["RR"].value == pytest.approx(15 / 21)  # `none` counts as 0
    assert actual["Success@1"].value == pytest.approx(10 / 21)
    assert actual["Success@1 of named queries"].observed == "1 of 2 below: q11 (.0000)"
    assert {name: check.outcome for name, check in actual.items()} == {
        "RR": PASSED,
        "Success@1": FAILED,
        "nDCG@3": PASSED,
        "RR in hard": PASSED,
        "RR in difficulty: high": UNDECIDED,
        "Judged@1": PASSED,
        "Success@1 of named queries": FAILED,
        "false answers": FAILED,
        "mean latency": PASSED,
        "p95 latency": UNDECIDED,
        "failed queries": PASSED,
    }
    assert result.outcome == FAILED, "however the undecided ones turn out"


def test_outcomes_list_every_missed_check_and_newest_failures(mapping, admin_user):
    poor, good = search(mapping, POOR, GOOD).runs.order_by("run_order")
    strict = read_rules("{floors: {mrr: 0.9, P@1: 0.9}, false_answers: {at_most: 0.5}}")
    gate(poor, rules=strict, by=admin_user)
    gate(poor, rules=read_rules("floors: {mrr: 0.01}"))
    [failed] = GateOutcome.objects.latest_failed(admin_user)
    assert (failed.run, failed.by, len(failed.checks)) == (poor, admin_user, 4)
    assert [(check["name"], check["required"]) for check in failed.missed] == [
        ("RR", "≥ .9000"),
        ("P@1", "≥ .9000"),
        ("false answers", "≤ .5000 of the queries without a relevant document"),
    ]
    lost = search(mapping, [0] * 5 + GOOD[5:], name="lost").runs.get()
    assert gate(lost, rules=strict).outcome == UNDECIDED
    assert lost.gate_outcomes.get().outcome == "undecided", "neither passed nor failed"
    assert list(GateOutcome.objects.latest_failed(admin_user)) == [failed], "nothing was decided since"
    gate(good, rules=strict)
    assert [outcome.run for outcome in GateOutcome.objects.latest_failed(admin_user)] == [good], "the latest by them"
    assert not GateOutcome.objects.latest_failed(User(is_active=True)).exists(), "only staff see any"


def test_slice_check_does_not_depend_on_evaluation_order(mapping):
    benchmark = search(mapping, [1, 1, *GOOD[2:]])
    evaluation = Evaluation.objects.get()
    evaluation.values = [list(reversed(row)) for row in evaluation.values]
    evaluation.query_ids = list(reversed(evaluation.query_ids))
    evaluation.save()
    check = checks(gate(benchmark, rules=read_rules("slices: {hard: {minimum_queries: 2, mrr: 1}}")))["RR in hard"]
    assert (check.n, check.value) == (2, 1.0)


def test_skip_policy_excludes_unanswerable_queries_from_floors(mapping):
    benchmark = search(mapping, GOOD, empty_queries="skip")
    check = checks(gate(benchmark, rules=read_rules("floors: {mrr: 0.75, Success@1: 0.5}")))
    assert (check["RR"].n, check["RR"].value) == (20, 0.75)
    assert (check["Success@1"].n, check["Success@1"].value) == (20, 0.5)
    assert benchmark.runs.get().evaluations.get().means["RR"] == check["RR"].value


LOSS = read_rules("against_baseline: {nDCG@10: {may_lose: 0.01}}")
GAIN = read_rules("against_baseline: {nDCG@10: {must_gain: 0.01}}")


def test_significant_loss_fails_and_significant_gain_passes(mapping):
    before = search(mapping, GOOD, name="before")
    worse, better = search(mapping, POOR, name="worse"), search(mapping, BEST, name="better")
    baseline = pinned(before.runs.get())
    outcomes = {
        (benchmark.name, kind): gate(benchmark, rules=rules, baseline=baseline).outcome
        for benchmark in (worse, better, before)
        for kind, rules in (("loss", LOSS), ("gain", GAIN))
    }
    assert outcomes == {
        ("worse", "loss"): FAILED,
        ("worse", "gain"): FAILED,
        ("better", "loss"): PASSED,
        ("better", "gain"): PASSED,
        ("before", "loss"): PASSED,  # the baseline held against itself
        ("before", "gain"): FAILED,
    }
    *_, warning = gate(before.runs.get(), rules=LOSS, baseline=baseline).warnings
    answer = 'The run "dense · top 10" is the baseline itself, so it shows no difference.'
    assert warning == answer
    assert not any("itself" in warning for warning in gate(worse, rules=LOSS, baseline=baseline).warnings)


@pytest.mark.parametrize(
    ("rule", "judged", "outcome"),
    [
        ("may_lose: 0.1", "worse", FAILED),
        ("may_lose: 0.5", "worse", PASSED),  # .37 is lost on every query
        ("must_gain: 0.1", "better", PASSED),
        ("may_lose: 0.1", "better", PASSED),
    ],
)
def test_an_equal_difference_on_every_query_is_judged(mapping, rule, judged, outcome):
    worse, better = search(mapping, [2] * 20, name="worse"), search(mapping, BEST, name="better")
    run, baseline = (worse, better) if judged == "worse" else (better, worse)
    rules = read_rules(f"against_baseline: {{nDCG@10: {{{rule}}}}}")
    check = checks(gate(run, rules=rules, baseline=pinned(baseline.runs.get())))["nDCG@10 against the baseline"]
    assert check.outcome == outcome, check


def test_the_same_rankings_lose_nothing(mapping):
    baseline = pinned(search(mapping, GOOD, name="before").runs.get())
    result = gate(search(mapping, GOOD, name="same"), rules=LOSS, baseline=baseline)
    check = checks(result)["nDCG@10 against the baseline"]
    assert (check.outcome, check.observed) == (PASSED, "no query differs")


def test_insignificant_loss_passes_only_by_the_lenient_rule(mapping):
    baseline = pinned(search(mapping, GOOD, name="before").runs.get())
    noisy = search(mapping, [2, *GOOD[1:10], 1, *GOOD[11:19], 4])
    undecided = gate(noisy, rules=LOSS, baseline=baseline)
    [check, _] = undecided.verdicts[0].checks
    assert (check.outcome, undecided.outcome) == (UNDECIDED, UNDECIDED)
    assert check.value < -0.001
    assert "do not rule out a loss" in check.note
    assert check.note.endswith("would decide.")
    lenient = read_rules("against_baseline: {nDCG@10: {may_lose: 0.01, unless_significant: true}}")
    [check, _] = gate(noisy, rules=lenient, baseline=baseline).verdicts[0].checks
    assert check.outcome == PASSED
    assert "do not rule out a loss" in check.note
    lower = read_rules("{floors: {nDCG@10: 0.99}, against_baseline: {nDCG@10: {may_lose: 0.01}}}")
    assert gate(noisy, rules=lower, baseline=baseline).outcome == FAILED, "a failure hides behind nothing undecided"


def test_best_of_many_runs_gets_a_wider_interval(mapping):
    """Its interval is wider than that of a run that was named beforehand."""
    baseline = pinned(search(mapping, GOOD, name="before").runs.get())
    luck = [[2 if n % 5 == shift else 1 for n in range(20)] for shift in range(5)]
    best = gate(search(mapping, *luck), rules=LOSS, baseline=baseline).verdicts[0]
    alone = gate(best.run, rules=LOSS, baseline=baseline).verdicts[0]
    assert best.checks[0].value == alone.checks[0].value
    assert width(best.checks[0]) > width(alone.checks[0])


def width(check: CheckReport) -> float:
    low, high = check.observed.replace("−", "-").split("[")[1].rstrip("]").split(", ")
    return float(high) - float(low)


def test_every_run_is_judged_where_that_is_asked_for(mapping):
    benchmark = search(mapping, GOOD, POOR, BEST)
    benchmark.runs.filter(run_order=2).update(status=Run.Status.FAILED, error_message="The encoder is gone.")
    result = gate(benchmark, rules=read_rules("floors: {mrr: 0.8}"), every_run=True)
    assert {verdict.run.run_order: verdict.outcome for verdict in result.verdicts} == {1: FAILED, 2: FAILED, 3: PASSED}
    assert "The encoder is gone." in render_markdown(result)


def test_failed_queries_of_one_run_hide_no_other_loss(mapping):
    baseline = pinned(search(mapping, BEST, name="main").runs.get())
    benchmark = search(mapping, [1] * 10 + [5] * 10, [1] * 10 + [0] * 10)
    rules = read_rules("against_baseline: {RR: {may_lose: 0.01}}")
    result = gate(benchmark, rules=rules, baseline=baseline, every_run=True)
    lost, failed = (verdict.checks[0] for verdict in result.verdicts)
    assert (lost.outcome, lost.n) == (FAILED, 21)
    assert (failed.outcome, failed.n) == (PASSED, 11)


def test_version_slice_matches_the_version_on_pages(mapping):
    Query.objects.filter(key__in=["q03", "q04"]).update(metadata={"version": "2.0"})
    benchmark = search(mapping, GOOD)
    rules = read_rules('slices: {"version: 2.0": {minimum_queries: 2, RR: 1}}')
    assert checks(gate(benchmark, rules=rules))["RR in version: 2.0"].outcome == PASSED


def test_failed_queries_are_in_no_mean_but_counted(mapping):
    benchmark = search(mapping, [0, 0, *BEST[2:]])
    result = checks(gate(benchmark, rules=read_rules("floors: {mrr: 0.9}\ncoverage: {failed_queries: 1}")))
    assert (result["RR"].n, result["RR"].value) == (19, pytest.approx(18 / 19))
    assert (result["failed queries"].outcome, result["failed queries"].observed) == (FAILED, "2: q01, q02")


def test_floor_over_few_answered_queries_does_not_pass(mapping):
    benchmark = search(mapping, [1, *[0] * 19])
    result = gate(benchmark, rules=read_rules("floors: {Success@1: 0.5}"))
    assert checks(result)["Success@1"].outcome == PASSED
    assert checks(result)["failed queries"].required == "≤ 0"
    assert checks(result)["failed queries"].outcome == FAILED
    allowed = gate(benchmark, rules=read_rules("floors: {Success@1: 0.5}\ncoverage: {failed_queries: 19}"))
    assert {result.outcome, allowed.outcome} == {UNDECIDED}
    one_failed = search(mapping, [0, *BEST[1:]], name="later")
    rules = read_rules("floors: {Success@1: 0.5}\ncoverage: {failed_queries: 1}")
    assert gate(one_failed, rules=rules).outcome == PASSED


def test_incomplete_runs_are_undecided_unless_runs_may_fail(mapping):
    benchmark = search(mapping, GOOD, POOR, BEST)
    benchmark.runs.filter(run_order=2).update(status=Run.Status.CANCELLED)
    benchmark.runs.filter(run_order=3).update(status=Run.Status.FAILED)
    strict, lenient = (read_rules(f"floors: {{mrr: 0.7}}\nruns_may_fail: {word}") for word in ("false", "true"))
    result = gate(benchmark, rules=strict)
    assert result.run_selection == "the only completed run (1 cancelled, 1 failed)"
    check = checks(result)["completed runs"]
    assert (check.observed, check.outcome) == ("1 of 3", UNDECIDED)
    assert "the best run may be among them" in render_markdown(result)
    assert result.outcome == UNDECIDED
    allowed = gate(benchmark, rules=lenient)
    assert (allowed.outcome, allowed.run_selection) == (PASSED, result.run_selection)
    assert gate(benchmark.runs.get(run_order=1), rules=strict).outcome == PASSED
    assert gate(benchmark, rules=strict, every_run=True).outcome == FAILED
    assert gate(benchmark, rules=lenient, every_run=True).outcome == PASSED


def test_values_of_another_truth_are_not_compared(mapping):
    before = search(mapping, GOOD, name="before")
    baseline = pinned(before.runs.get())
    skipping = search(mapping, GOOD, name="skipping", empty_queries="skip")
    assert gate(skipping, rules=LOSS, baseline=baseline).outcome == UNDECIDED
    version = add_version(mapping.dataset)
    mapping.dataset_version = version
    mapping.save()
    after = search(mapping, POOR, name="after")
    [check, _] = gate(after, rules=LOSS, baseline=baseline).verdicts[0].checks
    assert check.outcome == UNDECIDED
    assert 'Re-score "before" on version 2' in check.note
    evaluate_runs(before, before.runs.all(), version=version)
    assert gate(after, rules=LOSS, baseline=baseline).outcome == FAILED


def test_gate_rejects_incomparable_input(mapping):
    benchmark = search(mapping, GOOD)
    with pytest.raises(GateError, match=r"\(against_baseline\): choose one"):
        gate(benchmark, rules=LOSS)
    second = make_benchmark(make_mapping(make_dataset({"q": []}, name="other"), mapping.collection, name="m"), [0.5])
    with pytest.raises(GateError, match="belongs to the dataset other"):
        gate(benchmark, rules=LOSS, baseline=pinned(second.runs.get()))
    Run.objects.filter(benchmark=benchmark).update(status=Run.Status.CANCELLED)
    messages = {
        benchmark: "has completed: run it before you judge it",
        benchmark.runs.get(): "only a completed run can be",
    }
    for subject, message in messages.items():
        with pytest.raises(GateError, match=message):
            gate(subject, rules=read_rules("floors: {mrr: 0}"))


def test_markdown_is_deterministic_and_escapes_user_text(mapping):
    typed = "a|b <script> @team [x](y)"
    Query.objects.filter(key="q20").update(slices=[typed])
    benchmark = search(mapping, GOOD, POOR)
    baseline = pinned(benchmark.runs.get(run_order=1))
    rules = read_rules(
        "floors: {mrr: 0.9}\nagainst_baseline: {nDCG@10: {may_lose: 0.01}}\n"
        f"slices: {{'{typed}': {{minimum_queries: 1, mrr: 0.9}}}}"
    )
    first, again = (render_markdown(gate(benchmark, rules=rules, baseline=baseline)) for _ in range(2))
    assert first == again
    assert first.startswith("## Gate failed: 2 failed, of 4 checks\n")
    assert r"a\|b \<script> \@team [x\](y)" in first
    rows = [line for line in first.splitlines() if line.startswith("| ")]
    assert {len(line.replace("\\|", "").split("|")) for line in rows} == {7}
