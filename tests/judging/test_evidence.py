"""Evidence of a round besides ranks: what the order rests on, and that no grade of a model counts."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.datasets.models import Judgment
from apps.judging.closing import close_round
from apps.judging.grading import grade_item
from apps.judging.handing import next_items
from apps.judging.judges import change_round
from apps.judging.llm.calibration import draw_sample
from apps.judging.models import Grade, LLMJudge, Round, RoundState
from apps.judging.settling import deciding
from apps.operations.working import wait
from benchbench.ir.judging.state import State
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
from tests.judging.rounds import make_judges, open_for, state_now
from tests.judging.simulated import SIZE, grade_of, grade_sample, judged_by_model
from tests.retrieval.llm_server import LLMServer


@pytest.fixture
def opened(simulated: Benchmark, ada: User) -> Round:
    opened = open_for(simulated, [ada], owner=ada, order="decisive", measure="nDCG@5", seed=3)
    draw_sample(opened, SIZE, ada)
    return opened


def state_of(opened: Round) -> State:
    state = state_now(opened).state
    assert state is not None
    return state


def test_the_calibration_sample_comes_first_in_the_decisive_order(opened: Round, ada: User) -> None:
    state_of(opened)
    first = set(opened.calibration_items.order_by("place").values_list("item", flat=True))
    assert {item.pk for item in next_items(opened, ada, count=20)} <= first


def test_a_calibrated_model_is_evidence_and_none_of_it_is_in_state_closing_or_version(
    opened: Round, ada: User, server: LLMServer
) -> None:
    grade_sample(opened, ada)
    before = state_of(opened)
    judge = judged_by_model(opened, errors=0.1)
    now = state_now(opened)
    after = state_of(opened)
    assert now.row.evidence["model"] == judge.name
    assert (now.row.grades, now.row.sample_size) == (SIZE, RoundState.objects.get().sample_size)
    assert (after.judged, after.holes) == (before.judged, before.holes)
    assert [(pair.least, pair.greatest) for pair in after.pairs] == [
        (pair.least, pair.greatest) for pair in before.pairs
    ]
    assert sum(pair.spread for pair in after.pairs) < sum(pair.spread for pair in before.pairs)

    deciding._desks.clear()
    RoundState.objects.update(mark="")
    assert state_of(opened) == after, "another process says the same"

    closed = close_round(opened, ada)
    assert closed.version is not None
    assert closed.judgments == SIZE
    assert not closed.version.judgments.filter(source="llm").exists()
    assert not closed.version.judgments.filter(judge__contains=judge.name).exists()


def test_a_model_is_no_evidence_before_it_is_calibrated_nor_once_the_guidelines_changed(
    opened: Round, ada: User, server: LLMServer
) -> None:
    grade_sample(opened, ada, 29)
    before = state_of(opened)
    judged_by_model(opened)
    assert (state_of(opened), state_now(opened).row.evidence["model"]) == (before, "")
    row = opened.calibration_items.order_by("place").select_related("item__query", "item__document")[29]
    grade_item(opened, row.item_id, ada, grade=grade_of(row.item))
    assert state_now(opened).row.evidence["model"] == LLMJudge.objects.get().name
    change_round(opened, ada, guidelines="Think twice.")
    assert state_now(Round.objects.get()).row.evidence["model"] == ""


@pytest.mark.django_db(transaction=True)
def test_texts_are_evidence_where_a_run_has_vectors_and_the_page_names_them(admin_client: Client) -> None:
    library = make_library()
    benchmark = create_benchmark(library, name="b", matrix={"search_modes": ["sparse", "dense"]})
    wait(launch(benchmark))
    (ada,) = make_judges("ada")
    Judgment.objects.filter(grade__lte=1).delete()
    opened = open_for(Benchmark.objects.get(), [ada], owner=ada, order="decisive", measure="nDCG@5")
    told = state_now(opened)
    assert told.row.evidence == {"index": "keywords", "model": ""}
    assert Grade.objects.count() == 0
    before = told.state
    deciding._desks.clear()
    RoundState.objects.update(mark="")
    assert state_of(opened) == before, "what is packed says the same"
    page = admin_client.get(reverse("admin:round_state_fragment", args=[opened.pk])).content.decode()
    assert "vectors of the index &quot;keywords&quot;" in page
