"""What a round's grades have settled, and what comes next because of them."""

from collections.abc import Sequence
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from apps.datasets.models import Judgment, Query
from apps.execution.launching import launch
from apps.judging.closing import close_round
from apps.judging.grading import grade_item, undo
from apps.judging.handing import list_waiting_rounds, load_next_items
from apps.judging.judges import RoundError, change_round
from apps.judging.llm.calibration import draw_sample
from apps.judging.models import Grade, Round, RoundState, Slot
from apps.judging.opening import RoundOptions, open_round
from apps.judging.question import Question
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.state import State
from benchbench.ir.measures import Measure
from benchbench.process import reset_all
from tests.created import create_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.judging.rounds import (
    SIZE,
    give_back,
    grade_of,
    grade_sample,
    judged_by_model,
    make_judges,
    open_for,
    state_now,
)
from tests.kept import made_once
from tests.library import make_library
from tests.rankings import add_ranking

QUERIES, DOCUMENTS = 20, 12


@made_once
def make_apart() -> Benchmark:
    """Return a benchmark of two runs over 20 queries: the second has first what the first has last."""
    dataset = make_dataset({f"q{number:02}": [] for number in range(QUERIES)})
    collection = make_collection("library", [{"title": f"Document {number}"} for number in range(DOCUMENTS)])
    mapping = make_mapping(dataset, collection)
    resolve(mapping)
    benchmark = make_benchmark(mapping, [0.1, 0.5])
    ids = list(collection.documents.order_by("id").values_list("pk", flat=True))
    first, second = benchmark.runs.order_by("run_order")
    for query in Query.objects.filter(dataset=dataset):
        add_ranking(first, query, ids)
        add_ranking(second, query, ids[::-1])
    return benchmark


@pytest.fixture
def apart(db: None) -> Benchmark:
    return make_apart()


def best(opened: Round) -> int:
    """Return the document that the second run has first."""
    return max(opened.items.values_list("document_id", flat=True))


def state_of(opened: Round) -> tuple[State, Sequence[Run]] | None:
    """Return the state of now and its runs."""
    answer = state_now(opened)
    return None if answer.state is None else (answer.state, answer.runs)


def grade_on(opened: Round, judge: User, limit: int) -> int:
    """Grade what is handed out, as if only the first document of the second run were relevant; return how many."""
    graded, relevant = 0, best(opened)
    while graded < limit and (items := load_next_items(opened, judge, count=5)):
        for item in items:
            grade_item(opened, item.pk, judge, grade=2 if item.document_id == relevant else 0)
        graded += len(items)
    return graded


def test_settled_round_stops_unless_the_owner_continues_it(apart, ada):
    opened = open_for(apart, [ada], order="decisive", measure="nDCG@5", uniform_share=0.1)
    assert opened.item_count == QUERIES * 10
    begun = state_of(opened)
    assert not begun[0].is_settled
    assert [run.run_order for run in begun[1]] == [1, 2]

    graded = grade_on(opened, ada, opened.item_count)
    assert graded < opened.item_count
    opened.refresh_from_db()
    state = state_of(opened)
    assert (state[0].is_settled, state[0].winner, opened.settled_at is None) == (True, 1, False)
    assert load_next_items(opened, ada) == []
    Round.objects.update(continue_after_settled=True)
    assert len(load_next_items(Round.objects.get(), ada)) == 1


def test_a_settled_question_that_is_undone_is_open_again(apart, ada):
    opened = open_for(apart, [ada], order="decisive", measure="nDCG@5")
    grade_on(opened, ada, opened.item_count)
    while (state := state_of(opened)) and state[0].is_settled:
        undo(opened, ada, count=10)
    assert state is not None
    assert opened.settled_at is None
    assert load_next_items(opened, ada) != []


def test_state_depends_only_on_the_grades(apart, ada):
    opened = open_for(apart, [ada], measure="nDCG@5", depth=5, scale=[{"grade": n, "name": str(n)} for n in range(3)])
    grade_on(opened, ada, 60)
    state_of(opened)
    undo(opened, ada, count=3)
    recognised = state_of(opened)
    reset_all()
    RoundState.objects.update(mark="")
    assert recognised == state_of(opened)


def test_settling_goes_on_from_the_stored_state(apart, ada, monkeypatch):
    """So any process comes to the same answer; after another search the rankings are others, and so are the runs."""
    before: list[State | None] = []
    compute = Judging.state

    def note(judging: Judging, **declared: Any) -> State:
        before.extend([declared["before"]] if "before" in declared else [])
        return compute(judging, **declared)

    monkeypatch.setattr(Judging, "state", note)
    opened = open_for(apart, [ada], order="decisive", measure="nDCG@5")
    first = state_of(opened)[0]
    grade_on(opened, ada, 5)
    reset_all()
    state_of(opened)
    Run.objects.update(completed_at=opened.created_at)
    state_of(opened)
    assert (before[0], before[1], before[-1]) == (None, first, None)


def test_new_grades_reorder_the_waiting_items(apart, ada):
    opened = open_for(apart, [ada], order="decisive", measure="nDCG@5")
    before = list(Slot.objects.filter(round=opened).order_by("place").values_list("item_id", flat=True))
    grade_on(opened, ada, 40)
    state_of(opened)
    waiting = Slot.objects.filter(round=opened, done=False).order_by("place").values_list("item_id", flat=True)
    assert list(waiting) != [item for item in before if item in set(waiting)]


def test_a_budget_of_a_decisive_round_ends_it(apart, ada):
    opened = open_for(apart, [ada], owner=ada, order="decisive", measure="nDCG@5", budget=7)
    assert opened.item_count > 7
    assert grade_on(opened, ada, 100) == 7
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    ada.user_permissions.set(Permission.objects.filter(content_type__app_label="judging"))
    client = Client()
    client.force_login(ada)

    def page_of(name, *args):
        return client.get(reverse(f"admin:{name}", args=args)).content.decode()

    assert "7 of 7" in page_of("judging_round_changelist"), "not of all items of the round"
    assert "The round's budget of 7 items is used up." in unescape(page_of("round_judge", opened.pk))
    assert "The budget of 7 items is used up, and a new round" in page_of("round_state_fragment", opened.pk)
    assert list(list_waiting_rounds(ada)) == [opened], "to close it"
    Round.objects.update(owner=User.objects.create_user("grace"))
    assert list(list_waiting_rounds(ada)) == [], "nothing is left to grade"


def test_single_run_round_has_no_state_or_decisive_order(apart, ada):
    runs = [apart.runs.get(run_order=1)]
    assert state_of(open_round(runs, RoundOptions("one", order="depth"), judges=[ada])) is None
    with pytest.raises(RoundError, match="needs at least two runs"):
        open_round(runs, RoundOptions("one"), judges=[ada])
    with pytest.raises(RoundError, match="cannot decide a round"):
        open_for(apart, [ada], measure="Judged@10")


@pytest.mark.parametrize(("grade", "learns"), [(1, False), (0, True)])
def test_prior_judgments_train_only_if_some_are_irrelevant(grade, learns):
    pool = Pool.from_rankings([[[1, 2, 3], [4, 5]], [[3, 2, 1], [5, 4]]])
    judging = Question(pool, Measure.parse("nDCG@3"), (0, 1), [{1: 1}, {4: grade}], 1, grade <= 0).build_judging()
    taught = judging.state().reason
    assert taught is not None
    alone = "this round has 0"
    assert ("here are 2 and" if learns else alone) in taught


@pytest.fixture
def opened(simulated: Benchmark, ada: User) -> Round:
    opened = open_for(simulated, [ada], owner=ada, order="decisive", measure="nDCG@5", seed=3)
    draw_sample(opened, SIZE, ada)
    return opened


def evident_state(opened: Round) -> State:
    state = state_now(opened).state
    assert state is not None
    return state


def test_calibration_sample_comes_first_only_once_settled(opened, ada):
    first = set(opened.calibration_items.order_by("place").values_list("item", flat=True))
    evident_state(opened)
    assert not {item.pk for item in load_next_items(opened, ada, count=20)} <= first
    give_back(opened, ada)
    while not evident_state(opened).is_settled:
        for item in load_next_items(opened, ada, count=20):
            grade_item(opened, item.pk, ada, grade=grade_of(item))
    change_round(opened, ada, continue_after_settled=True)
    RoundState.objects.update(mark="")
    evident_state(opened)
    assert {item.pk for item in load_next_items(opened, ada, count=20)} <= first


def test_calibrated_model_is_evidence_but_never_in_the_version(opened, ada, server):
    grade_sample(opened, ada)
    before = evident_state(opened)
    judge = judged_by_model(opened, errors=0.1)
    now = state_now(opened)
    after = evident_state(opened)
    assert now.row.evidence["model"] == judge.name
    assert (now.row.grades, now.row.sample_size) == (SIZE, RoundState.objects.get().sample_size)
    assert (after.judged, after.unjudged) == (before.judged, before.unjudged)
    assert [(pair.lower_bound, pair.upper_bound) for pair in after.pairs] == [
        (pair.lower_bound, pair.upper_bound) for pair in before.pairs
    ]
    assert sum(pair.standard_deviation for pair in after.pairs) < sum(pair.standard_deviation for pair in before.pairs)

    reset_all()
    RoundState.objects.update(mark="")
    assert evident_state(opened) == after, "another process says the same"

    closed = close_round(opened, ada)
    assert closed.judgments == SIZE
    assert not closed.version.judgments.filter(source="llm").exists()
    assert not closed.version.judgments.filter(judge__contains=judge.name).exists()


def test_model_with_the_current_prompt_is_evidence_at_once(opened, ada, server):
    rows = opened.items.exclude(calibration__isnull=False).select_related("query", "document")[:10]
    for item in rows:
        grade_item(opened, item.pk, ada, grade=grade_of(item))
    before = evident_state(opened)
    judge = judged_by_model(opened)
    after = evident_state(opened)
    assert state_now(opened).row.evidence["model"] == judge.name
    assert after.judged == before.judged
    assert [pair.difference for pair in after.pairs] != [pair.difference for pair in before.pairs]
    change_round(opened, ada, guidelines="Think twice.")
    assert state_now(Round.objects.get()).row.evidence["model"] == ""


@pytest.mark.django_db(transaction=True)
def test_text_vectors_are_evidence_and_named_on_the_page(admin_client):
    library = make_library()
    benchmark = create_benchmark(library, name="b", matrix={"search_modes": ["sparse", "dense"]})
    wait(launch(benchmark))
    (ada,) = make_judges("ada")
    Judgment.objects.filter(grade__lte=1).delete()
    opened = open_for(Benchmark.objects.get(), [ada], owner=ada, order="decisive", measure="nDCG@5")
    answer = state_now(opened)
    assert answer.row.evidence == {"index": "keywords", "model": ""}
    assert Grade.objects.count() == 0
    before = answer.state
    reset_all()
    RoundState.objects.update(mark="")
    assert evident_state(opened) == before, "what is packed says the same"
    page = admin_client.get(reverse("admin:round_state_fragment", args=[opened.pk])).content.decode()
    assert "vectors of the index &quot;keywords&quot;" in page
