"""Calibration of a model as judge, and the verdicts under the three policies."""

import numpy as np
import pytest

from apps.datasets.models import Judgment
from apps.judging.grading import grade_item
from apps.judging.judges import NotAJudgeError, RoundError, RoundStateError, change_round
from apps.judging.llm.board import load_board
from apps.judging.llm.calibration import CalibrationReport, compute_calibration, draw_sample
from apps.judging.llm.launching import find_family
from apps.judging.llm.verdicts import CORRECTED, FILLED, HUMAN, PolicyReport, compute_verdicts
from apps.judging.models import Grade, LLMJudge, Round
from apps.records.models import Evaluation
from benchbench.ir.judging.agreement import alpha
from benchbench.process import reset_all
from tests.judging.rounds import SIZE, grade_of, grade_sample, judged_by_model, make_judges, open_for


def of_policy(judge: LLMJudge, policy: str) -> PolicyReport:
    return next(message for message in compute_verdicts(judge.round, judge).verdicts if message.policy == policy)


def test_sample_is_frozen_and_independent_of_grades(opened, ada, simulated):
    assert draw_sample(opened, SIZE, ada) == SIZE
    pairs = list(opened.calibration_items.values_list("item__query", "item__document"))
    assert len(set(pairs)) == SIZE
    with pytest.raises(RoundStateError, match=r"was already drawn \(60 pairs\) and cannot change"):
        draw_sample(opened, SIZE, ada)
    second = open_for(simulated, [ada], owner=ada, order="decisive", measure="P@5", seed=3)
    for item in second.items.all()[:20]:
        grade_item(second, item.pk, ada, grade=2)
    draw_sample(second, SIZE, ada)
    assert list(second.calibration_items.values_list("item__query", "item__document")) == pairs


def test_samples_that_cannot_be_are_refused(opened, simulated, ada):
    for size in (29, 501):
        with pytest.raises(RoundError, match="30 to 500 pairs"):
            draw_sample(opened, size, ada)
    with pytest.raises(NotAJudgeError):
        draw_sample(opened, SIZE, make_judges("eve")[0])
    small = open_for(simulated, [ada], owner=ada, budget=100, uniform_share=0.4)
    with pytest.raises(RoundError, match="pairs of the random order are items of the round"):
        draw_sample(small, 100, ada)
    assert draw_sample(small, 40, ada) == 40
    assert draw_sample(opened, 500, ada) == opened.pool_size, "a smaller pool is taken whole"


def test_figures_are_those_of_the_sample_alone(calibrated, opened, ada):
    remaining = opened.items.filter(calibration=None).select_related("query", "document")
    for item in remaining[:50]:
        grade_item(opened, item.pk, ada, grade=2 - grade_of(item))  # a person who errs elsewhere
    message = compute_calibration(calibrated)
    assert (message.graded_by_both, message.unavailable_reason, message.warnings) == (SIZE, None, [])
    rows = opened.calibration_items.order_by("place").select_related("item__query", "item__document")
    people = [grade_of(row.item) for row in rows]
    of_model = dict(Grade.objects.filter(source="llm").values_list("item_id", "grade"))
    model = [of_model[row.item_id] for row in rows]
    expected = alpha(np.array([people, model], float), seed=3)
    assert message.figures.alpha == pytest.approx(expected.value)
    assert message.figures.alpha_low is not None
    assert message.figures.alpha_low == pytest.approx(expected.interval.low, abs=0.05)
    biases = {bias.grade: bias.mean for bias in message.figures.bias if bias.items}
    for grade, mean in biases.items():
        supplied = [m - p for p, m in zip(people, model, strict=True) if p == grade]
        assert mean == pytest.approx(np.mean(supplied))
    assert message.figures.tau is not None
    assert message.figures.tau > 0
    assert message.figures.mean_absolute_difference is not None
    assert message.figures.mean_absolute_difference > 0


def test_uncalibrated_model_shows_no_figures(opened, ada, server):
    judge = judged_by_model(opened)

    def refused(reason: str) -> CalibrationReport:
        calibration = compute_calibration(judge)
        assert reason in str(calibration.unavailable_reason)
        assert calibration.figures is None
        verdicts = {one.policy: one for one in compute_verdicts(judge.round, judge).verdicts}
        assert verdicts[HUMAN].pairs
        for policy in (FILLED, CORRECTED):
            refusal = verdicts[policy]
            assert (refusal.pairs, refusal.best_run_ids, refusal.sentence) == ([], [], refusal.unavailable_reason)
            assert "has no calibration" in refusal.sentence
            assert reason in refusal.sentence
        return calibration

    refused("has no calibration sample: draw one")
    draw_sample(opened, SIZE, ada)
    refused("0 pairs of the calibration sample are judged")
    grade_sample(opened, ada, 29)
    assert refused("31 pairs wait for people's grades").graded_by_both == 29
    row = opened.calibration_items.select_related("item__query", "item__document").get(place=31)
    grade_item(opened, row.item_id, ada, grade=grade_of(row.item))
    assert refused("29 pairs").graded_by_both == 29, "what comes later in the order waits for those before it"
    grade_sample(opened, ada, 30)
    assert compute_calibration(judge).graded_by_both == 31


def test_it_is_stale_when_model_prompt_or_scale_change(calibrated, opened, ada, server, monkeypatch):
    def is_stale(reason: str) -> None:
        judge = LLMJudge.objects.select_related("round").get(pk=calibrated.pk)
        calibration = compute_calibration(judge)
        assert calibration.is_stale
        assert reason in str(calibration.unavailable_reason)
        assert calibration.figures is None
        for policy in (FILLED, CORRECTED):
            assert "stale" in str(of_policy(judge, policy).unavailable_reason)
        assert of_policy(judge, HUMAN).best_run_ids

    scale = opened.scale
    Round.objects.update(scale=[*scale, {"grade": 9, "name": "Perfect", "description": ""}])
    is_stale("the scale or the guidelines of the round changed")
    Round.objects.update(scale=scale)
    change_round(opened, ada, guidelines="Be strict.")
    is_stale("the scale or the guidelines of the round changed")
    Round.objects.update(guidelines="")
    with monkeypatch.context() as patched:
        patched.setattr("apps.judging.llm.prompting.VERSION", "3")
        is_stale("the prompt has version 3 now")
    server.digest = "another"
    reset_all()
    is_stale("ollama:llama3 has another revision (another)")
    server.digest = "d1"
    reset_all()
    assert not compute_calibration(LLMJudge.objects.get(pk=calibrated.pk)).is_stale


def test_unjudgeable_pairs_are_excluded_and_counted(calibrated, opened, ada):
    first, second = opened.calibration_items.order_by("place")[:2]
    grade_item(opened, first.item_id, ada, kind="cannot_judge")
    Grade.objects.filter(item=second.item_id, source="llm").update(kind="cannot_judge", grade=None)
    calibration = compute_calibration(calibrated)
    assert (calibration.graded_by_both, calibration.cannot_judge_people, calibration.cannot_judge_model) == (
        SIZE - 2,
        1,
        1,
    )


def test_judge_related_to_a_reranker_or_rewriter_triggers_warning(calibrated, opened):
    first, second, _ = opened.runs.order_by("run_order")
    first.config |= {"use_reranker": True, "reranker": "meta-llama/Llama-3-reranker"}
    second.config |= {"query": "rewrite", "llm": "here:vicuna-7b"}
    for run in (first, second):
        run.save(update_fields=["config"])
    answer = compute_calibration(calibrated).warnings
    assert len(answer) == 2
    assert f'in "{first}" meta-llama/Llama-3-reranker reranks.' in answer[0]
    assert f'in "{second}" here:vicuna-7b rewrites queries.' in answer[1]
    second.config |= {"llm": "here:qwen2.5:7b"}
    second.save(update_fields=["config"])
    assert len(compute_calibration(calibrated).warnings) == 1


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("ollama:llama3", "llama"),
        ("openai:gpt-4o-mini", "gpt"),
        ("ollama:qwen2.5:7b", "qwen"),
        ("Qwen/Qwen3-Reranker-0.6B", "qwen"),
        ("here:mistralai/Mixtral-8x7B", "mistral"),
        ("cross-encoder/ms-marco-MiniLM-L6-v2", "ms"),
        ("ollama:phi3", "phi"),
    ],
)
def test_model_families_are_recognised_by_name(model, family):
    assert find_family(model) == family


def test_three_verdicts_are_reported_under_their_policies(calibrated, simulated):
    stored = list(Evaluation.objects.order_by("pk").values())
    judgments = Judgment.objects.count()
    message = compute_verdicts(calibrated.round, calibrated)
    human, filled, corrected = message.verdicts
    assert [one.policy for one in message.verdicts] == ["human", "human + llm", "corrected"]
    assert [len(one.pairs) for one in message.verdicts] == [3, 3, 0]
    assert (human.model_judged, human.judged) == (0, filled.judged)
    assert human.unjudged == filled.model_judged == calibrated.round.pool_size - SIZE
    assert filled.unjudged == 0
    assert (human.sample_gain, filled.sample_gain) == (None, None)
    assert "Open a round with the order “queries”" in corrected.sentence, "this one is in random order"
    assert len({one.meaning for one in message.verdicts}) == 3
    assert list(Evaluation.objects.order_by("pk").values()) == stored, "what is stored stays human"
    assert Judgment.objects.count() == judgments


def test_round_without_a_model_has_only_the_human_verdict(opened):
    human, *remaining = compute_verdicts(opened, None).verdicts
    assert len(human.pairs) == 3
    assert {one.unavailable_reason for one in remaining} == {"No model has judged this round."}


def test_human_verdict_is_independent_of_model_grades(calibrated, opened, ada, server):
    before = of_policy(calibrated, HUMAN)
    Grade.objects.filter(source="llm").update(grade=2)
    assert of_policy(calibrated, HUMAN) == before
    Grade.objects.filter(source="llm").delete()
    assert of_policy(calibrated, HUMAN) == before


def test_perfect_model_fills_the_gaps_with_true_grades(opened, ada, server):
    draw_sample(opened, SIZE, ada)
    grade_sample(opened, ada)
    judge = judged_by_model(opened, errors=0.0)
    board = load_board(opened, judge)
    true = board.compute_values(board.build_truths(board.prior_grades, board.model))
    expected = [float((true[a] - true[b]).mean()) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert [pair.difference for pair in of_policy(judge, FILLED).pairs] == pytest.approx(expected, abs=1e-12)
    figures = compute_calibration(judge).figures
    assert figures.alpha == 1


def test_a_correction_that_cannot_be_says_why(calibrated, opened):
    Grade.objects.filter(pk=Grade.objects.filter(source="llm", item__calibration=None)[0].pk).delete()
    total = opened.pool_size
    assert f"The model judged {total - 1} of {total} unjudged pairs" in of_policy(calibrated, CORRECTED).sentence
    assert of_policy(calibrated, FILLED).unjudged == 1
    Round.objects.update(measure="AP", order="queries")
    judge = LLMJudge.objects.get(pk=calibrated.pk)
    assert of_policy(judge, HUMAN).pairs
    assert of_policy(judge, CORRECTED).unavailable_reason


def test_where_every_run_was_deleted_nothing_is_compared(calibrated, opened):
    opened.runs.clear()
    for message in compute_verdicts(opened, calibrated).verdicts:
        assert (message.pairs, message.best_run_ids) == ([], [])
        assert message.unavailable_reason
    figures = compute_calibration(calibrated)
    assert figures.figures is not None, "the grades are there"
    assert (figures.figures.tau, figures.figures.mean_absolute_difference) == (None, None)


def test_deleted_run_invalidates_the_sample_and_explains_the_remedy(calibrated, opened):
    opened.runs.remove(opened.runs.order_by("run_order")[0])
    answer = of_policy(calibrated, CORRECTED)
    assert not answer.pairs
    assert answer.sentence.startswith(f"The round began with {opened.pool_size} unjudged pairs")
    assert answer.sentence.endswith("Open a round over the current runs, and calibrate the model there.")
    assert of_policy(calibrated, FILLED).pairs
