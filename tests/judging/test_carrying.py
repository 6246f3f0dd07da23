"""The verdict that a version carries: closed rounds, and what leaderboard, comparison, gate and files say first."""

import csv
import io
import json
from collections.abc import Sequence

import pytest
from django.contrib.auth.models import User

from apps.datasets.editing.drafts import freeze
from apps.datasets.models import DatasetVersion
from apps.judging.closing import Closed, close_round
from apps.judging.grading import grade_item
from apps.judging.handing import load_next_items
from apps.judging.models import Round
from apps.judging.opening import RoundOptions, open_round
from apps.judging.settling.renewing import load_round_status
from apps.mappings.resolving import resolve
from apps.records.measuring.selection import find_selection
from apps.records.models import Benchmark, RoundVerdict, Run
from apps.results.comparison_report import build_report
from apps.results.exporters.results_json import build_results
from apps.results.exporting import export
from apps.verdicts.comparing import compare_runs
from apps.verdicts.gates.baselines import approve
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.reports import render_markdown
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.sentences import build_verdict
from benchbench.ir.judging.certainty import calibrate
from benchbench.ir.judging.judging import DRAWS
from tests.drafts import set_judgment
from tests.judging.rounds import grade_of, make_judges, make_simulated, open_for
from tests.kept import made_once
from tests.pages import one_line

GRADES = 70  # of about 250 pairs


@pytest.fixture
def benchmark(db) -> Benchmark:
    return make_simulated()


def judge(opened: Round, judge: User, count: int) -> None:
    """Give true grades to so many items in the round's order."""
    for _ in range(count):
        items = load_next_items(opened, judge)
        if not items:
            return
        grade_item(opened, items[0].pk, judge, grade=grade_of(items[0]))


@made_once
def make_closed() -> Benchmark:
    """Return the benchmark with its round, closed after GRADES grades."""
    benchmark = make_simulated()
    close_early(benchmark)
    return benchmark


@pytest.fixture
def closed(db) -> Benchmark:
    return make_closed()


def carrying() -> DatasetVersion:
    return DatasetVersion.objects.get(number=2)


def close_early(benchmark: Benchmark, grades: int = GRADES, runs: Sequence[Run] | None = None) -> Closed:
    (alice,) = make_judges("alice")
    options = RoundOptions(name="fruit", order="decisive", uniform_share=0.0)
    opened = open_round(runs or runs_of(benchmark), options, judges=[alice], owner=alice)
    Round.objects.filter(pk=opened.pk).update(continue_after_settled=True)
    opened.refresh_from_db()
    judge(opened, alice, grades)
    alice.is_superuser = True
    alice.save()
    closed = close_round(opened, alice)
    benchmark.refresh_from_db()  # with its mapping, which is resolved again
    return closed


def runs_of(benchmark: Benchmark) -> list[Run]:
    return list(benchmark.runs.order_by("run_order"))


class TestClosing:
    def test_the_version_carries_the_state_of_the_round(self, closed):
        opened = Round.objects.get()
        carried = RoundVerdict.objects.get(dataset_version=carrying())
        state = load_round_status(opened).state
        assert carried.state == state
        assert (carried.name, carried.measure, carried.grades) == ("fruit", opened.measure, GRADES)
        assert {*carried.run_ids} == {run.pk for run in runs_of(closed)}
        assert state.judged < state.judged + state.unjudged
        assert len(state.runs) == 3

    def test_the_page_of_the_closed_round_keeps_saying_it(self, closed):
        opened = Round.objects.get()
        before = RoundVerdict.objects.get().state
        set_judgment(carrying().dataset, "q01", {"document_id": "d1"}, 2)
        freeze(carrying().dataset)
        assert load_round_status(Round.objects.get(pk=opened.pk)).state == before

    def test_a_round_without_grades_leaves_no_verdict(self, benchmark):
        close_early(benchmark, 0)
        assert not RoundVerdict.objects.exists()


class TestReading:
    def test_a_comparison_says_the_rounds_verdict_first(self, closed):
        opened = Round.objects.get()
        comparison = compare_runs(runs_of(closed), version=carrying())
        state = RoundVerdict.objects.get().state
        text = build_verdict(comparison)
        assert "by the judging round “fruit”" in text.verdict
        assert f"probability {state.probability:.2f}"[-2:] in text.verdict
        assert {comparison.runs[run].pk for run in comparison.verdict.group} == {
            RoundVerdict.objects.get().run_ids[row] for row in state.verdict
        }
        assert text.notes[0].startswith(f"Expected {opened.measure}")
        assert text.notes[1].startswith("By plain means: ")
        assert "rest on selectively judged documents" in text.warnings[0]

    def test_the_runs_are_ordered_by_expected_means(self, closed):
        comparison = compare_runs(runs_of(closed), version=carrying())
        carried, report = RoundVerdict.objects.get(), build_report(comparison)
        means = [carried.state.runs[carried.run_ids.index(run.run)].mean for run in report.round_verdict.runs]
        assert means == sorted(means, reverse=True) == [run.mean for run in report.round_verdict.runs]
        assert [run.id for run in report.runs] == [run.run for run in report.round_verdict.runs]
        plain = {run.id: run.mean for run in report.runs}
        assert {run.run: run.plain_mean for run in report.round_verdict.runs} == plain
        assert all(run.mean > run.plain_mean for run in report.round_verdict.runs), "holes count as not relevant"

    def test_a_pair_of_the_runs_has_its_own_outcome(self, closed):
        best, *_, worst = runs_of(closed)
        comparison = compare_runs([best, worst], version=carrying(), baseline=worst)
        carried = RoundVerdict.objects.get()
        pair = carried.state.get_pair(carried.run_ids.index(best.pk), carried.run_ids.index(worst.pk))
        assert pair.outcome == 1
        assert comparison.verdict.find_standing(comparison.runs.index(best)) == "better"
        displayed = next(run for run in build_report(comparison).round_verdict.runs if run.run == best.pk)
        assert (displayed.difference, displayed.difference_interval) == (pair.difference, [pair.low, pair.high])
        assert displayed.probability == calibrate(pair.probability, DRAWS)

    def test_other_comparisons_are_by_plain_means(self, closed):
        runs = runs_of(closed)
        assert compare_runs(runs).carried is None, "the version before"
        assert "judging round" not in " ".join(build_report(compare_runs(runs)).warnings)
        second = compare_runs(runs, version=carrying(), measure="P@5")
        assert second.carried is None
        assert "rest on selectively judged documents" in build_report(second).warnings[0]

    def test_runs_outside_the_round_are_told_to_be_judged(self, closed):
        stranger = DatasetVersion.objects.first().pk
        selection = find_selection(carrying(), [runs_of(closed)[0].pk, stranger])
        assert not selection.settles(RoundVerdict.objects.get().measure)
        assert "judge their unjudged results in a new round" in selection.caveat

    def test_a_part_of_the_runs_has_its_verdict_first(self, benchmark):
        first, second, third = runs_of(benchmark)
        closed = close_early(benchmark, runs=[first, third])
        verdict = build_verdict(compare_runs([first, second, third], version=closed.version)).verdict
        assert verdict.startswith("Of 2 runs: settled by the judging round “fruit”, probability")
        assert verdict.index("is the best run") < verdict.index("By plain means of all 3:")
        assert {*RoundVerdict.objects.get().run_ids} == {first.pk, third.pk}

    def test_later_versions_say_where_the_verdict_is(self, closed):
        set_judgment(carrying().dataset, "q01", {"document_id": "d1"}, 2)
        later = freeze(carrying().dataset)
        selection = find_selection(later, [run.pk for run in runs_of(closed)])
        assert not selection.is_own
        assert "Version 2 carries the round's verdict" in selection.caveat

    def test_too_few_grades_give_a_caveat_and_no_verdict(self, benchmark):
        closed = close_early(benchmark, 5)
        assert RoundVerdict.objects.get().state.reason
        comparison = compare_runs(runs_of(benchmark), version=closed.version)
        assert comparison.carried is None
        assert "judging round" not in build_verdict(comparison).verdict
        assert "rest on selectively judged documents" in build_verdict(comparison).warnings[0]

    def test_a_wholly_judged_pool_has_no_caveat(self, benchmark):
        closed = close_early(benchmark, 1000)
        assert RoundVerdict.objects.get().state.unjudged == 0
        comparison = compare_runs(runs_of(benchmark), version=closed.version)
        assert comparison.carried is None
        assert "judging round" not in " ".join(build_verdict(comparison).warnings)


class TestShowing:
    def test_the_leaderboards_verdict_has_expected_means(self, closed, admin_client):
        url = f"/admin/benchmarks/benchmark/{closed.pk}/verdict/"
        page = admin_client.get(f"{url}?version={carrying().number}").content.decode()
        assert "by the judging round “fruit”" in page
        assert "Expected once all documents are judged" in page
        assert "rest on selectively judged documents" in page
        before = admin_client.get(url).content.decode()
        assert "judging round “fruit”" not in before

    def test_the_first_page_says_it_on_the_newest_version(self, closed, admin_client):
        line = one_line(admin_client.get(f"/admin/benchmarks/benchmark/{closed.pk}/verdict/?brief=1").content.decode())
        assert "On version 2: " in line
        assert "by the judging round “fruit”" in line

    def test_the_comparison_page_shows_both(self, closed, admin_client):
        page = admin_client.get(f"/admin/benchmarks/run/compare/?benchmark={closed.pk}&version=2").content.decode()
        assert page.index("by the judging round “fruit”") < page.index("By plain means: ")
        assert "expected difference" in page

    def test_the_closing_page_shows_both_verdicts(self, benchmark, admin_client):
        (alice,) = make_judges("alice")
        opened = open_for(benchmark, [alice], order="decisive")
        judge(opened, alice, GRADES)
        page = admin_client.get(f"/admin/judging/round/{opened.pk}/close/").content.decode()
        assert "will carry the verdict of the round" in page
        assert "and would say: The best run" in page
        bare = open_for(benchmark, [alice], order="decisive", name="bare")
        page = admin_client.get(f"/admin/judging/round/{bare.pk}/close/").content.decode()
        assert "The version will carry no verdict." in page

    @pytest.mark.parametrize("format", ["markdown", "html", "latex"])
    def test_documents_begin_with_it(self, closed, format):
        written = "".join(
            piece if isinstance(piece, str) else piece.decode()
            for piece in export(closed, format, version=carrying().number)
        )
        at = written.index("by the judging round")
        assert at < written.index("By plain means: ")
        assert "Expected nDCG" in written

    def test_files_of_numbers_have_both_means(self, closed):
        results = build_results(closed, version=carrying())
        assert "rest on selectively judged documents" in results.caveat
        expected = {run.run: run for run in results.round_verdict.runs}
        written = "".join(export(closed, "csv", version=carrying().number))
        for row in csv.DictReader(io.StringIO(written)):
            run = next(run for key, run in expected.items() if str(key) == row["run_id"])
            assert float(row["expected_mean"]) == run.mean
            assert row["round_standing"] == run.standing
            assert float(row[results.round_verdict.measure.replace("ndcg", "nDCG")]) == run.plain_mean
        assert build_results(closed).round_verdict is None
        assert build_results(closed).caveat is None


RULES = "against_baseline:\n  ndcg@{k}: {{may_lose: {limit}}}\n"


class TestGates:
    def test_a_gate_judges_by_the_expected_difference(self, closed):
        best, *_, worst = runs_of(closed)
        baseline = approve(best, name="main", reason="It is the best.", by=User.objects.first())
        rules = read_rules(RULES.format(k=closed.primary_k, limit=0.01), location="rules")
        result = gate(worst, rules=rules, baseline=baseline, version=2)
        carried = RoundVerdict.objects.get()
        pair = carried.state.get_pair(carried.run_ids.index(worst.pk), carried.run_ids.index(best.pk))
        check = next(check for check in result.verdicts[0].rule_checks if "against" in check.name)
        assert check.value == pair.difference
        assert result.outcome == "failed"
        assert "by the judging round “fruit”" in result.warnings[0]
        assert "rest on selectively judged documents" in result.warnings[1]
        written = render_markdown(result)
        assert written.index("judging round") < written.index("| check |")
        assert "v2" in written

    def test_floors_on_such_a_version_have_the_caveat(self, closed):
        rules = read_rules(f"floors: {{ndcg@{closed.primary_k}: 0.1}}", location="rules")
        assert "rest on selectively judged" in gate(runs_of(closed)[0], rules=rules, version=2).warnings[0]

    def test_a_version_without_values_is_refused(self, closed):
        set_judgment(closed.mapping.dataset, "q01", {"document_id": "d1"}, 2)
        freeze(closed.mapping.dataset)
        resolve(closed.mapping)
        closed.refresh_from_db()
        rules = read_rules(f"floors: {{ndcg@{closed.primary_k}: 0.1}}", location="rules")
        with pytest.raises(Exception, match="has no values on version 3 of its dataset: re-score it first"):
            gate(runs_of(closed)[0], rules=rules, version=3)
        with pytest.raises(Exception, match="has no version 9"):
            gate(runs_of(closed)[0], rules=rules, version=9)


class TestOverTheApi:
    def test_comparison_results_and_gate_say_it(self, closed, admin_client):
        runs = runs_of(closed)
        query = "&".join(f"run={run.pk}" for run in runs)
        report = admin_client.get(f"/api/v2/comparison?{query}").json()
        assert "judging round “fruit”" in report["verdict"]
        assert report["round_verdict"]["round"] == "fruit"
        results = admin_client.get(f"/api/v2/benchmarks/{closed.pk}/results?version=2").json()
        assert results["round_verdict"]["sentence"] == report["round_verdict"]["sentence"]
        rules = {"rules": f"floors: {{ndcg@{closed.primary_k}: 0.1}}", "version": 2}
        judged = admin_client.post(
            f"/api/v2/runs/{runs[0].pk}/gate", data=json.dumps(rules), content_type="application/json"
        ).json()
        assert judged["dataset_version"].endswith("v2")
        assert "rest on selectively judged" in judged["warnings"][0]
