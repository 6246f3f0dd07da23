"""Closing a round: the next version of the dataset, and the values on it."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from apps.collections.importing import import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.collections.states import record_state
from apps.datasets.editing.drafts import end_queries, find_draft, freeze, open_draft
from apps.datasets.models import DatasetVersion, Query
from apps.judging.closing import close_round
from apps.judging.grading import adjudicate, grade_item
from apps.judging.handing import load_next_items
from apps.judging.judges import NotAJudgeError, RoundStateError
from apps.judging.models import Round
from apps.mappings.resolving import resolve
from apps.records.models import Benchmark, Evaluation, StageList
from benchbench.errors import ConflictError
from tests.drafts import set_judgment
from tests.judging.rounds import TITLES, open_for

TITLE_BY_ID = {f"d{number}": title for number, title in enumerate(TITLES, 1)}


DOCUMENTS = {name: DocumentRecord(name, title, f"{title} are fruit.") for name, title in TITLE_BY_ID.items()}
MENU = ("Menu", "The week's menu.")


def store(benchmark: Benchmark, documents: dict[str, DocumentRecord]) -> None:
    """Make these the documents of the collection."""
    import_documents(benchmark.mapping.collection, list(documents.values()))
    resolve(benchmark.mapping)
    benchmark.mapping.refresh_from_db()


def state_searched(benchmark: Benchmark) -> None:
    """Record that the benchmark searched DOCUMENTS."""
    store(benchmark, DOCUMENTS)
    collection = Collection.objects.get()
    Benchmark.objects.update(state=record_state(collection, collection.fingerprint).number)


def grade_all(opened: Round, judge: User, grade: int = 1) -> None:
    while items := load_next_items(opened, judge, count=20):
        for item in items:
            grade_item(opened, item.pk, judge, grade=grade, note="Seen.")


def test_closing_freezes_a_version_and_rescores_without_searching(benchmark, round_of_ada, ada):
    lists = StageList.objects.count()
    grade_all(round_of_ada, ada)
    assert find_draft(benchmark.mapping.dataset) is None, "grades count nowhere before"
    closed = close_round(round_of_ada, ada)
    assert (closed.version.number, closed.judgments) == (2, 10)
    assert closed.version.judgments.count() == 12
    assert closed.sentence == (
        "The round is closed: 10 new judgments in questions v2. "
        '"which is better": Measured 2 runs on questions v2 from stored rankings.'
    )
    judgment = closed.version.judgments.get(query__key="q1", doc_ref={"document_id": "d3"})
    assert (judgment.source, judgment.judge, judgment.judged_by, judgment.note) == ("human", "ada", ada, "Seen.")
    assert Evaluation.objects.filter(dataset_version=closed.version).count() == 2
    assert StageList.objects.count() == lists
    round_of_ada.refresh_from_db()
    assert (round_of_ada.state, round_of_ada.closed_by, round_of_ada.closed_version) == ("closed", ada, closed.version)
    with pytest.raises(RoundStateError, match="is closed"):
        close_round(round_of_ada, ada)


def test_the_judges_of_an_item_are_all_named(benchmark, ada, grace):
    opened = open_for(benchmark, [ada, grace], owner=ada, overlap=1.0, depth=2)
    grade_all(opened, ada, 0)
    grade_all(opened, grace, 2)
    with pytest.raises(RoundStateError, match="4 items of the round wait for adjudication"):
        close_round(opened, ada)
    items = list(opened.items.order_by("place"))
    adjudicate(opened, items[0].pk, ada, 1)
    closed = close_round(opened, ada, leave_out_split=True)
    assert (closed.judgments, closed.split) == (1, 3)
    judgment = closed.version.judgments.get(since=2)
    assert (judgment.grade, judgment.judge, judgment.judged_by) == (1, "ada, grace, ada (adjudicated)", None)
    assert judgment.note == "ada: Seen.\ngrace: Seen."


def test_round_without_grades_closes_and_keeps_the_dataset(benchmark, round_of_ada, ada):
    (item,) = load_next_items(round_of_ada, ada)
    grade_item(round_of_ada, item.pk, ada, kind="cannot_judge")
    closed = close_round(round_of_ada, ada)
    assert closed.version is None
    assert "no grades to keep" in closed.sentence
    assert DatasetVersion.objects.count() == 1


def test_closing_does_not_silently_freeze_other_draft_edits(benchmark, round_of_ada, ada):
    dataset = benchmark.mapping.dataset
    grade_all(round_of_ada, ada)
    set_judgment(dataset, "q1", {"uri": "elsewhere"}, 1)
    with pytest.raises(RoundStateError, match="a draft with 1 change: 1 judgment added, which closing"):
        close_round(round_of_ada, ada)
    assert Round.objects.get().is_open
    closed = close_round(round_of_ada, ada, with_draft=True)
    assert closed.version.judgments.count() == 13


def test_items_changed_since_opening_are_omitted_and_counted(benchmark, round_of_ada, ada):
    dataset = benchmark.mapping.dataset
    grade_all(round_of_ada, ada, 2)
    reworded = dataset.queries.get(key="q2")
    set_judgment(dataset, "q1", {"document_id": "d3"}, 0)
    end_queries(open_draft(dataset), [reworded])
    Query.objects.create(dataset=dataset, key="q2", text="In other words?", since=2)
    freeze(dataset)
    closed = close_round(round_of_ada, ada)
    of_q2 = round_of_ada.items.filter(query=reworded).count()
    assert (closed.version.number, closed.outdated, closed.judged) == (3, of_q2, 1)
    assert closed.judgments == 10 - of_q2 - 1
    assert closed.version.judgments.get(doc_ref={"document_id": "d3"}).grade == 0
    assert f"Left out: {of_q2} items of queries or documents that changed since, 1 item that" in closed.sentence


def test_items_of_documents_rewritten_since_opening_are_omitted(benchmark, ada):
    """A grade is for the text that was judged: other content under the same id is another document."""
    state_searched(benchmark)
    opened = open_for(benchmark, [ada], owner=ada)
    grade_all(opened, ada)
    changed = DOCUMENTS | {name: DocumentRecord(name, *MENU) for name in ("d3", "d5")}
    changed["d4"] = replace(DOCUMENTS["d4"], metadata={"season": "autumn"})
    store(benchmark, {name: document for name, document in changed.items() if name != "d5"})
    store(benchmark, changed)
    closed = close_round(opened, ada)
    items = opened.items.filter(document__external_id__in=["d3", "d5"])
    assert (closed.outdated, closed.judgments) == (items.count(), 10 - items.count())
    stored = {row.doc_ref["document_id"] for row in closed.version.judgments.filter(since=2)}
    assert stored == {"d1", "d2", "d4", "d6"}


def test_round_opened_after_a_rewrite_keeps_its_grades(benchmark, ada):
    state_searched(benchmark)
    store(benchmark, DOCUMENTS | {"d3": DocumentRecord("d3", *MENU)})
    opened = open_for(benchmark, [ada], owner=ada)
    grade_all(opened, ada)
    closed = close_round(opened, ada)
    assert (closed.outdated, closed.judgments) == (0, 10)


def test_closing_reports_benchmarks_that_cannot_be_rescored(benchmark, round_of_ada, ada):
    grade_all(round_of_ada, ada)
    Benchmark.objects.update(status="running")
    closed = close_round(round_of_ada, ada)
    assert '"which is better" could not be re-scored: The benchmark' in closed.sentence
    assert closed.version is not None
    assert resolve(benchmark.mapping).mapping.dataset_version == closed.version


def test_only_owner_closes_a_round_and_runs_stay_protected(benchmark, ada, grace):
    opened = open_for(benchmark, [ada], owner=grace)
    with pytest.raises(NotAJudgeError, match="Only the owner"):
        close_round(opened, ada)
    from apps.execution.launching import delete_benchmark

    with pytest.raises(ConflictError, match="is used by"):
        delete_benchmark(benchmark)
