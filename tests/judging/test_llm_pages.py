"""Pages of a model that judges a round: its cost, its start and end, its calibration, three verdicts, the course."""

import json
import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.judging.grading import grade_item
from apps.judging.llm.calibrating import calibration_of
from apps.judging.llm.describing import verdicts_report
from apps.judging.llm.verdicts import verdicts_of
from apps.judging.models import Grade, LLMJudge, Round
from apps.judging.settling.course import MOST_POINTS, course_of
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.judging.rounds import make_judges
from tests.judging.simulated import grade_of
from tests.judging.test_calibrating import SIZE, ada, calibrated, opened, simulated  # noqa: F401 (fixtures)
from tests.judging.test_leading_pages import page
from tests.judging.test_pages import signed_in
from tests.results.test_pages import text_of
from tests.retrieval.llm_server import LLMServer

MODEL = {"server": "ollama", "llm": "llama3", "most": "4"}


@pytest.fixture
def lead(client: Client, opened: Round, ada: User) -> Client:  # noqa: F811
    return signed_in(client, ada)


def url(name: str, of: Round) -> str:
    return reverse(f"admin:{name}", args=[of.pk])


def test_a_model_is_started_after_its_cost_and_can_be_cancelled(
    lead: Client,
    opened: Round,  # noqa: F811
    server: LLMServer,
) -> None:
    server.answer = lambda prompt: "1"
    assert url("round_llm", opened) in page(lead, "judging_round_change", opened)
    assert "Start" in page(lead, "round_llm", opened)
    told = text_of(lead.post(url("round_llm_preview", opened), MODEL))
    assert "4 answers of ollama:llama3@d1" in told
    assert f"the cap leaves {opened.item_count - 4} items out" in told
    assert "No calibration sample is drawn" in told
    wrong = text_of(lead.post(url("round_llm_preview", opened), MODEL | {"llm": "other"}))
    assert "has no model 'other'" in unescape(wrong)
    assert not Operation.objects.exists()

    answer = lead.post(url("round_llm", opened), MODEL)
    assert answer["Location"].endswith("/change/#llm")
    operation = Operation.objects.get()
    shown = page(lead, "judging_round_change", opened)
    assert f'data-operation="{operation.pk}"' in shown
    assert "cancel_llm_selected" in shown
    sent = {"action": "cancel_llm_selected", "_selected_action": str(opened.pk), "next": url("round_llm", opened)}
    for sentence in ("judges &quot;fruit&quot; no more", "there is nothing to cancel"):
        done = lead.post(reverse("admin:judging_round_changelist"), sent, follow=True)
        assert sentence in done.content.decode()
    operation.refresh_from_db()
    assert operation.status == "cancelled"

    lead.post(url("round_llm", opened), MODEL)
    wait(Operation.objects.get(status="pending"))
    told = page(lead, "round_llm_judges", opened)
    assert "It judged 4 of" in told
    assert "The round has no calibration sample: draw one." in told


def test_the_sample_is_drawn_on_a_page(lead: Client, opened: Round) -> None:  # noqa: F811
    assert url("round_sample", opened) in page(lead, "judging_round_change", opened)
    refused = lead.post(url("round_sample", opened), {"size": "7"})
    assert "greater than or equal to 30" in refused.content.decode()
    lead.post(url("round_sample", opened), {"size": "30"})
    assert opened.calibration_items.count() == 30
    assert url("round_sample", opened) not in page(lead, "judging_round_change", opened)
    again = lead.post(url("round_sample", opened), {"size": "30"})
    assert "it is frozen" in again.content.decode()


def test_calibration_and_verdicts_are_shown_as_they_are_told(
    lead: Client,
    calibrated: LLMJudge,  # noqa: F811
    opened: Round,  # noqa: F811
) -> None:
    told = calibration_of(calibrated)
    assert told.figures
    assert told.effect
    shown = lead.get(url("round_llm_judges", opened))
    (judge,) = shown.context["judges"]
    assert judge["calibration"].figures.alpha == told.figures.alpha.value
    words = text_of(shown)
    assert f"{SIZE} pairs that people and the model graded" in words
    assert "Kendall’s τ" in words
    assert calibrated.name in words
    report = verdicts_report(verdicts_of(calibrated.round, calibrated))
    words = unescape(text_of(lead.get(url("round_verdicts", opened))))
    for verdict in report.verdicts:
        assert verdict.policy in words
        assert verdict.meaning in words
        assert verdict.sentence.partition('"')[0] in words
    assert re.search(r"worth about \+\d+ graded pairs", words)
    assert len(lead.get(url("round_verdicts", opened)).context["pairs"]) == 3


def test_a_stale_calibration_and_kin_are_told(lead: Client, calibrated: LLMJudge, opened: Round) -> None:  # noqa: F811
    first = opened.runs.order_by("run_order")[0]
    first.config |= {"use_reranker": True, "reranker": "meta-llama/Llama-3-reranker"}
    first.save(update_fields=["config"])
    assert "meta-llama/Llama-3-reranker reranks" in text_of(lead.get(url("round_llm_judges", opened)))
    Round.objects.update(guidelines="Be strict.")
    words = text_of(lead.get(url("round_llm_judges", opened)))
    assert "The calibration is stale, since the scale or the guidelines of the round changed" in words
    assert "Krippendorff" not in words
    assert "None. ollama:llama3@d1" in text_of(lead.get(url("round_verdicts", opened)))


def test_who_does_not_lead_is_told_nothing_of_models(
    client: Client,
    calibrated: LLMJudge,  # noqa: F811
    opened: Round,  # noqa: F811
) -> None:
    (grace,) = make_judges("grace")
    opened.judges.add(grace)
    signed_in(client, grace)
    shown = page(client, "judging_round_change", opened)
    assert "LLM judge" not in shown
    assert "course" not in shown
    for name in ("round_llm", "round_sample", "round_llm_judges", "round_verdicts", "round_course"):
        assert client.get(url(name, opened)).status_code == 403, name
    assert client.post(url("round_llm_preview", opened), MODEL).status_code == 403


def test_the_course_is_of_the_grades_that_stand(lead: Client, opened: Round, ada: User) -> None:  # noqa: F811
    assert course_of(opened) is None
    assert "There is no grade yet" in text_of(lead.get(url("round_course", opened)))
    items = list(opened.items.select_related("query", "document")[:90])
    for item in items[:5]:
        grade_item(opened, item.pk, ada, grade=2)
    assert "too few grades" in text_of(lead.get(url("round_course", opened)))
    for item in items:
        grade_item(opened, item.pk, ada, grade=grade_of(item))
    Grade.objects.create(
        item=items[0], source="llm", judge_name="m", grade=2, graded_at=items[0].grades.get().graded_at
    )
    course = course_of(opened)
    assert course
    counts = [point.grades for point in course.points]
    assert (len(counts), counts[0], counts[-1]) == (MOST_POINTS, 7, 90), "a grade that was changed counts once"
    last = course.points[-1]
    assert last.probability is not None
    assert last.settled is not None
    assert 0 < last.probability <= 1
    assert 0 <= last.settled <= 1
    shown = lead.get(url("round_course", opened))
    found = re.search(r'id="course-figure" type="application/json">(.*?)</script>', shown.content.decode())
    assert found
    verdict, pairs = json.loads(found[1])["data"]
    assert (verdict["x"], verdict["y"][-1], pairs["y"][-1]) == (counts, last.probability, last.settled)
