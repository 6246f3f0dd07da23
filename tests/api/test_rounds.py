"""Judging rounds over the API: who may do what in them, and what a judge is informed."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.judging.models import Grade, Round
from apps.records.models import Benchmark
from apps.retrieval.models import Chunk, ChunkSet
from benchbench.ir.judging.orders import SHARE
from tests.api.callers import Caller, Callers, assert_refused, checked_json
from tests.judging.rounds import make_compared, open_for

PATH = "/judging-rounds"


@pytest.fixture
def benchmark(db: None) -> Benchmark:
    return make_compared()


@pytest.fixture
def judge(callers: Callers) -> Caller:
    """A judge who owns nothing."""
    return callers.other


@pytest.fixture
def opened(benchmark: Benchmark, callers: Callers, judge: Caller) -> Round:
    return open_for(benchmark, [callers.owner.user, judge.user], owner=callers.owner.user, overlap=1.0)


def handed(caller: Caller, opened: Round, count: int = 1) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = checked_json(caller.post(f"{PATH}/{opened.pk}/next", {"count": count}), 200)["items"]
    return items


def test_item_shows_query_and_document_but_no_runs(opened: Round, callers: Callers, judge: Caller) -> None:
    item = opened.items.order_by("place")[0]
    chunk_set = ChunkSet.objects.create(collection=opened.mapping.collection, strategy="flat", fingerprint="f")
    text = item.document.text
    chunk = Chunk.objects.create(
        chunk_set=chunk_set, document=item.document, ordinal=0, position=0, text=text[4:], start=4, end=len(text)
    )
    opened.items.filter(pk=item.pk).update(chunk=chunk)
    (answer,) = handed(judge, opened)
    assert answer["item_id"] == item.pk
    assert (answer["query_text"], answer["document_title"]) == (item.query.text, item.document.title)
    assert (answer["text"], answer["passage"], answer["passage_start"]) == (text, text[4:], 4)
    assert not {"rank", "score", "run", "run_id", "probability", "uniform", "place"} & answer.keys()
    complete = judge.get(f"{PATH}/{opened.pk}/items/{item.pk}").json()
    assert complete == answer


def test_other_grades_are_shown_after_grading_unless_blind(opened: Round, callers: Callers, judge: Caller) -> None:
    path = f"{PATH}/{opened.pk}"
    (item,) = handed(callers.owner, opened)
    one = f"{path}/items/{item['item_id']}"
    callers.owner.post(f"{path}/grades", {"grades": [{"item_id": item["item_id"], "grade": 2}]})
    assert judge.get(one).json()["other_grades"] == []
    assert judge.get(f"{path}/agreement").status_code == 409
    Round.objects.update(blind=False)
    assert judge.get(one).json()["other_grades"] == [], "not before they graded it"
    judge.post(f"{path}/grades", {"grades": [{"item_id": item["item_id"], "grade": 0}]})
    assert [row["grade"] for row in judge.get(one).json()["other_grades"]] == [2]
    agreement = judge.get(f"{path}/agreement").json()
    assert (agreement["shared"], agreement["alpha_low"]) == (1, None)
    assert agreement["pairs"][0]["items"][0][2] == [item["item_id"]], "other: 0, owner: 2"


def test_a_judge_sees_and_grades_and_does_not_lead(opened: Round, callers: Callers, judge: Caller) -> None:
    path = f"{PATH}/{opened.pk}"
    (item,) = handed(judge, opened)
    messages = {"grades": [{"item_id": item["item_id"], "grade": 1, "seconds": 2.5}]}
    assert judge.post(f"{path}/grades", messages).status_code == 200
    assert [row["grade"] for row in judge.get(f"{path}/grades").json()["grades"]] == [1]
    for method, location, body in (
        ("POST", "close", {}),
        ("PATCH", "", {"continue_after_settled": True}),
        ("GET", "adjudications", None),
        ("POST", "adjudications", {"item_id": item["item_id"], "grade": 1}),
        ("POST", "llm-judges/preview", {}),
        ("GET", "verdicts?unknown=1", None),
        ("DELETE", "", None),
    ):
        assert_refused(judge.ask(method, f"{path}/{location}".rstrip("/"), body), 409, "not_a_judge")
    assert judge.post(f"{path}/grades/undo").json()["items"][0]["item_id"] == item["item_id"]
    assert not Grade.objects.exists()


def test_many_grades_are_all_kept_or_none(opened: Round, callers: Callers, judge: Caller) -> None:
    first, second = handed(judge, opened, 2)
    rows = [{"item_id": first["item_id"], "grade": 1}, {"item_id": second["item_id"], "grade": 7}]
    assert_refused(judge.post(f"{PATH}/{opened.pk}/grades", {"grades": rows}), 400, "invalid_round")
    assert not Grade.objects.exists()


def test_non_judge_viewing_a_round_cannot_grade(opened: Round, callers: Callers, judge: Caller) -> None:
    item = opened.items.order_by("place")[0]
    for location, body in (
        ("next", {}),
        ("grades", {"grades": [{"item_id": item.pk, "grade": 1}]}),
        ("grades/undo", {}),
    ):
        assert_refused(callers.overseer.post(f"{PATH}/{opened.pk}/{location}", body), 409, "not_a_judge")
    assert callers.overseer.get(f"{PATH}/{opened.pk}/items/{item.pk}").status_code == 200, "who sees all leads"
    stranger = Caller(User.objects.create_superuser("stranger"))
    assert stranger.get(f"{PATH}/{opened.pk}/state").status_code == 200


def test_opening_requires_visible_runs_and_existing_judges(
    benchmark: Benchmark, callers: Callers, judge: Caller
) -> None:
    runs = [str(run.pk) for run in benchmark.runs.order_by("run_order")]
    fields = {"name": "fruit", "run_ids": runs, "order": "depth", "judges": ["owner"]}
    Benchmark.objects.update(owner=callers.owner.user)
    assert judge.post(PATH, fields).status_code == 403
    answer = callers.owner.post(PATH, fields | {"judges": ["nobody"]})
    assert (answer.status_code, answer.json()["errors"].keys()) == (400, {"judges"})
    unknown = callers.owner.post(PATH, fields | {"judges": [judge.user.username]})
    same = answer.json()["errors"]["judges"][0].replace("nobody", judge.user.username)
    assert (unknown.status_code, unknown.json()["errors"]["judges"]) == (400, [same])  # of no team of the owner's
    assert_refused(callers.owner.post(PATH, fields | {"run_ids": [runs[0], runs[0]]}), 400, field="run_ids")
    created = checked_json(callers.owner.post(PATH, fields), 201)
    assert created["uniform_share"] == SHARE, "the usual one, as of the form and of the command"
    assert (created["judges"], created["item_count"], created["run_ids"]) == (["owner"], 10, runs)
