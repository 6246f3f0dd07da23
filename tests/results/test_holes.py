"""What unjudged documents could make of a verdict, on the page of a benchmark and of a comparison."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.datasets.models import Judgment
from apps.judging.leading import change_round
from apps.judging.llm.board import board_of
from apps.judging.models import Grade, LLMJudge, Round
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve_now
from apps.operations.working import wait
from apps.results.comparison.comparing import compare_runs
from apps.results.comparison.holes import holes_of
from benchbench.ir.judging.stress import NO_CLAIM
from tests.created import create_benchmark
from tests.judging.conftest import server  # noqa: F401 (a fixture)
from tests.judging.rounds import make_judges
from tests.judging.test_calibrating import ada, calibrated, opened, simulated  # noqa: F401 (fixtures)
from tests.results.test_pages import results_url, text_of


@pytest.fixture
def benchmark(library: Mapping) -> Benchmark:
    """Runs on a shelf of which every third judgment is lost."""
    lost = Judgment.objects.order_by("pk").values_list("pk", flat=True)[::3]
    Judgment.objects.filter(pk__in=list(lost)).delete()
    return searched(resolve_now(library))


def searched(library: Mapping) -> Benchmark:
    benchmark = create_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    wait(launch(benchmark))
    return benchmark


def fragment(client: Client, **asked: Any) -> Any:
    return client.get(reverse("admin:run_holes"), asked)


def test_the_holes_are_those_within_the_cutoff_and_as_filled_now_the_verdict_stands(benchmark: Benchmark) -> None:
    comparison = compare_runs(benchmark.runs.all())
    holes = holes_of(comparison, None)
    judged = set(Judgment.objects.values_list("query_id", "resolutions__document_id"))
    returned = {
        (result.query_id, document)
        for run in comparison.runs
        for result in run.query_results.all()
        for document in result.document_ids[:10]
    }
    assert (holes.pairs, holes.holes) == (len(returned), len(returned - judged))
    now, *_, worst = holes.stress.trials
    assert now.same
    assert now.group == tuple(sorted(comparison.verdict.group))
    assert now.means == pytest.approx(comparison.comparison.means)
    tried = {trial.filling: trial.skipped for trial in holes.stress.trials}
    assert tried["nearest judged"] is None  # by the vectors of the index
    assert worst.skipped == NO_CLAIM


def test_where_no_model_graded_the_line_says_how_many_fillings_were_tried(benchmark: Benchmark) -> None:
    stress = holes_of(compare_runs(benchmark.runs.all()), None).stress
    skipped = {trial.filling: trial.skipped for trial in stress.trials if trial.skipped}
    none = "No model has graded these documents in a round that you lead."
    assert skipped == {"model": none, "worst case": NO_CLAIM}
    assert stress.line == "The verdict holds under every filling of the holes that could be tried (3 of 5)."


def test_the_page_says_it_in_one_line_and_each_filling_in_a_table(admin_client: Client, benchmark: Benchmark) -> None:
    verdict = admin_client.get(results_url(benchmark, "verdict")).content.decode()
    assert f'hx-get="{reverse("admin:run_holes")}?benchmark={benchmark.pk}&amp;version=1"' in verdict
    response = fragment(admin_client, benchmark=benchmark.pk, version=1)
    line = holes_of(compare_runs(benchmark.runs.all()), None).stress.line
    assert line in text_of(response)
    assert "Left out of the rankings (condensed lists)" in text_of(response)
    runs = list(benchmark.runs.all())
    against = fragment(admin_client, run=[run.pk for run in runs], baseline=runs[0].pk)
    assert runs[0].label not in text_of(against).partition("Verdict")[2]


def test_where_all_is_judged_nothing_can_change(admin_client: Client, library: Mapping) -> None:
    benchmark = searched(library)
    said = text_of(fragment(admin_client, benchmark=benchmark.pk, version=1))
    assert "nothing unjudged can change the verdict" in said


def test_of_too_many_runs_it_says_so(admin_client: Client, library: Mapping) -> None:
    matrix = {"search_modes": ["dense"], "top_k_values": list(range(20, 37))}
    benchmark = create_benchmark(library, name="many", matrix=matrix)
    wait(launch(benchmark))
    assert "at most 16 runs" in text_of(fragment(admin_client, benchmark=benchmark.pk))
    assert "run_holes" not in admin_client.get(results_url(benchmark, "verdict")).content.decode()


def of_model(benchmark: Benchmark, reader: User | None = None) -> Any:
    """The test of the holes, and what came of the model's grades."""
    holes = holes_of(compare_runs(benchmark.runs.all(), measure="nDCG@10"), reader)
    return holes, next(trial for trial in holes.stress.trials if trial.filling == "model")


def test_a_models_grades_fill_the_holes(
    calibrated: LLMJudge,  # noqa: F811
    simulated: Benchmark,  # noqa: F811
    admin_client: Client,
) -> None:
    Round.objects.update(measure="nDCG@10")
    judge = LLMJudge.objects.get(pk=calibrated.pk)
    board = board_of(judge.round, judge)
    wanted = board.values(board.truths(board.known, board.model)).mean(axis=1)  # people's are a draft
    holes, trial = of_model(simulated)
    assert trial.skipped is None
    assert trial.means == pytest.approx(wanted)
    assert (holes.judge, holes.graded) == (judge.name, holes.holes)
    said = text_of(fragment(admin_client, benchmark=simulated.pk))
    assert f"{judge.name} graded {holes.holes} of them." in said


def test_grades_of_a_model_that_is_not_calibrated_any_more_fill_nothing(
    calibrated: LLMJudge,  # noqa: F811
    simulated: Benchmark,  # noqa: F811
    ada: User,  # noqa: F811
    opened: Round,  # noqa: F811
) -> None:
    assert of_model(simulated)[1].skipped is None
    change_round(opened, ada, guidelines="Be strict.")
    holes, trial = of_model(simulated)
    assert trial.skipped.startswith(f"{calibrated.name} has no calibration. The calibration is stale")
    assert (holes.judge, holes.graded) == ("", 0)
    change_round(opened, ada, guidelines="")
    assert of_model(simulated)[1].skipped is None
    Grade.objects.filter(source="human").delete()
    assert "0 pairs of the calibration sample are judged" in of_model(simulated)[1].skipped


def test_a_models_grades_are_for_who_leads_its_round(
    calibrated: LLMJudge,  # noqa: F811
    simulated: Benchmark,  # noqa: F811
    ada: User,  # noqa: F811
    admin_user: User,
) -> None:
    (eve,) = make_judges("eve")
    for user in (ada, eve):
        user.user_permissions.add(Permission.objects.get(codename="view_round"))
    calibrated.round.judges.add(eve)
    readers = [User.objects.get(pk=user.pk) for user in (eve, ada, admin_user)]
    skipped = [of_model(simulated, reader)[1].skipped for reader in readers]
    assert skipped == ["No model has graded these documents in a round that you lead.", None, None]
