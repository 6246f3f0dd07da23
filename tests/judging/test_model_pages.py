"""Pages on which who leads a round lets a model judge: cost, sample, calibration and verdicts."""

from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.judging.llm.calibration import compute_calibration
from apps.judging.llm.verdicts import compute_verdicts
from apps.judging.models import Round
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.judging.rounds import SIZE, make_judges, page, signed_in
from tests.site import text_of

MODEL = {"server": "ollama", "llm": "llama3", "item_limit": "4"}


@pytest.fixture
def lead(client: Client, opened: Round, ada: User) -> Client:
    return signed_in(client, ada)


def url(name: str, owner: Round) -> str:
    return reverse(f"admin:{name}", args=[owner.pk])


def test_without_a_server_no_start_is_offered(lead, opened, settings):
    settings.BENCHBENCH_LLM_SERVERS = []
    text = page(lead, "round_llm", opened)
    assert text.count("No language model server is configured: set BENCHBENCH_LLM_SERVERS.") == 1
    assert not any(words in text for words in ("bb-button-primary", 'id="preview"', 'name="server"'))


def test_model_starts_after_cost_preview_and_can_be_cancelled(lead, opened, server):
    server.answer = lambda prompt: "1"
    assert url("round_llm", opened) in page(lead, "judging_round_change", opened)
    assert "Start" in page(lead, "round_llm", opened)
    text = text_of(lead.post(url("round_llm_preview", opened), MODEL))
    assert "4 answers of ollama:llama3@d1" in text
    assert f"the cap leaves {opened.item_count - 4} items out" in text
    assert "No calibration sample yet" in text
    wrong = text_of(lead.post(url("round_llm_preview", opened), MODEL | {"llm": "other"}))
    assert "has no model 'other'" in unescape(wrong)
    assert not Operation.objects.exists()

    answer = lead.post(url("round_llm", opened), MODEL)
    assert answer["Location"].endswith("/change/#llm")
    operation = Operation.objects.get()
    displayed = page(lead, "judging_round_change", opened)
    assert f'data-operation="{operation.pk}"' in displayed
    assert "cancel_llm_selected" in displayed
    sent = {"action": "cancel_llm_selected", "_selected_action": str(opened.pk), "next": url("round_llm", opened)}
    for sentence in ("judges &quot;fruit&quot; no more", "there is nothing to cancel"):
        response = lead.post(reverse("admin:judging_round_changelist"), sent, follow=True)
        assert sentence in response.content.decode()
    operation.refresh_from_db()
    assert operation.status == "cancelled"

    lead.post(url("round_llm", opened), MODEL)
    wait(Operation.objects.get(status="pending"))
    text = page(lead, "round_llm_judges", opened)
    assert "It judged 4 of" in text
    assert "The round has no calibration sample: draw one." in text


def test_the_sample_is_drawn_on_a_page(lead, opened):
    assert url("round_sample", opened) in page(lead, "judging_round_change", opened)
    refused = lead.post(url("round_sample", opened), {"size": "7"})
    assert "greater than or equal to 30" in refused.content.decode()
    lead.post(url("round_sample", opened), {"size": "30"})
    assert opened.calibration_items.count() == 30
    assert url("round_sample", opened) not in page(lead, "judging_round_change", opened)
    again = lead.post(url("round_sample", opened), {"size": "30"})
    assert "cannot change" in again.content.decode()


def test_page_shows_calibration_and_verdicts_unchanged(lead, calibrated, opened):
    calibration = compute_calibration(calibrated)
    assert calibration.figures
    displayed = lead.get(url("round_llm_judges", opened))
    (judge,) = displayed.context["judges"]
    assert judge["calibration"].figures.alpha == calibration.figures.alpha
    words = text_of(displayed)
    assert f"Graded by people and the model: {SIZE} pairs" in words
    assert "Kendall’s τ" in words
    assert calibrated.name in words
    report = compute_verdicts(calibrated.round, calibrated)
    words = unescape(text_of(lead.get(url("round_verdicts", opened))))
    for verdict in report.verdicts:
        assert verdict.policy in words
        assert verdict.meaning in words
        assert verdict.sentence.partition('"')[0] in words
    assert len(lead.get(url("round_verdicts", opened)).context["pairs"]) == 3


def test_page_warns_of_stale_calibration_and_related_models(lead, calibrated, opened):
    first = opened.runs.order_by("run_order")[0]
    first.config |= {"use_reranker": True, "reranker": "meta-llama/Llama-3-reranker"}
    first.save(update_fields=["config"])
    assert "meta-llama/Llama-3-reranker reranks" in text_of(lead.get(url("round_llm_judges", opened)))
    Round.objects.update(guidelines="Be strict.")
    words = text_of(lead.get(url("round_llm_judges", opened)))
    assert "The calibration is stale because the scale or the guidelines of the round changed" in words
    assert "Krippendorff" not in words
    assert "None. ollama:llama3@d1" in text_of(lead.get(url("round_verdicts", opened)))


def test_plain_judge_sees_nothing_of_models(client, calibrated, opened):
    (grace,) = make_judges("grace")
    opened.judges.add(grace)
    signed_in(client, grace)
    displayed = page(client, "judging_round_change", opened)
    assert "LLM judge" not in displayed
    for name in ("round_llm", "round_sample", "round_llm_judges", "round_verdicts"):
        assert client.get(url(name, opened)).status_code == 403, name
    assert client.post(url("round_llm_preview", opened), MODEL).status_code == 403
