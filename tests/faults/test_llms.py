"""Language model that never finishes, does not answer or is down: at most an error of its query."""

import time
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.datasets.models import Query
from apps.judging.llm.launching import start_judging
from apps.judging.models import Grade, Round
from apps.operations.models import Operation
from apps.retrieval.models import LLMAnswer
from tests.factories import make_benchmark, make_round
from tests.faults.kit import scenarios, survive, undisturbed
from tests.faults.work import KINDS, Kind, benchmark_figures, library, start_benchmark
from tests.retrieval.llm_server import DRIPS, MODEL

STATED_SECONDS = 15
HIT = 4  # the query that is hit, during the batches


def start_rewriting() -> Operation:
    return start_benchmark(query=["rewrite"], llms=[f"openai:{MODEL}"])


def start_judging_by_model() -> Operation:
    owner = User.objects.get_or_create(username="judge")[0]
    run = make_benchmark(library(), [0.5], name=f"judged {Round.objects.count()}").runs.get()
    opened = make_round(run, judges=[owner], items=6, owner=owner, name=f"round {Round.objects.count()}")
    return start_judging(opened, f"ollama:{MODEL}", owner)[1]


def grades(operation: Operation) -> Any:
    rows = Grade.objects.filter(item__round=operation.subject_id, source="llm").order_by("item__place")
    return list(rows.values_list("item__place", "kind", "grade", "judge_name"))


KINDS["judging"] = Kind("judging", start_judging_by_model, grades)
BROKEN = [
    row for action in ("kill", "freeze") for row in scenarios(action, "judging: claimed, asked, graded, finished")
]
REWRITING = Kind("rewriting", start_rewriting, benchmark_figures)


def silent() -> str:
    time.sleep(5)
    return "too late"


class Away:
    """Overloaded at first, and then as ever."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int | None:
        self.times += 1
        return 503 if self.times <= 2 else None


@pytest.mark.parametrize(
    ("disturb", "message"),
    [
        (lambda: DRIPS, "The language model server openai did not answer within 3 s and was interrupted."),
        (silent, "The language model server openai does not answer"),
        (lambda: 500, "The language model server openai answered 500"),
        (lambda: b"<html>", "did not answer by"),
        (Away(), ""),
    ],
    ids=["drips for ever", "says nothing", "fails", "talks nonsense", "is overloaded for a moment"],
)
def test_missing_llm_answer_fails_only_its_query(crew, server, settings, disturb, message):
    texts = dict(Query.objects.filter(dataset=library().dataset).order_by("pk").values_list("pk", "text"))
    hit = list(texts)[HIT]
    server.answer = lambda prompt: next(text for text in texts.values() if text in prompt)
    expected = undisturbed(REWRITING)["rankings"]
    LLMAnswer.objects.all().delete()  # or no one would be asked
    answer = server.answer

    def disturbed(prompt: str) -> Any:
        outcome = disturb() if texts[hit] in prompt else None
        return answer(prompt) if outcome is None else outcome

    server.answer = disturbed
    operation = REWRITING.start()
    crew.start(
        BENCHBENCH_LLM_SERVERS=settings.BENCHBENCH_LLM_SERVERS,
        BENCHBENCH_LLM_KEYS=settings.BENCHBENCH_LLM_KEYS,
        BENCHBENCH_LLM_TIMEOUT_SECONDS=1,
    )
    crew.slowest = crew.sees_the_end_of(operation)
    operation.refresh_from_db()
    assert operation.status == "completed", operation.error
    rankings = REWRITING.figures(operation)["rankings"]
    failed = {key: one[-1] for key, one in rankings.items() if one[-1]}
    assert {query for _, query, _ in failed} == ({hit} if message else set())
    assert all(message in error for error in failed.values()), failed
    assert {key: one for key, one in rankings.items() if key not in failed} == {
        key: one for key, one in expected.items() if key not in failed
    }


@pytest.mark.parametrize("scenario", BROKEN, ids=str)
def test_a_model_that_judges_goes_on_with_another_worker(crew, server, settings, scenario):
    server.answer = lambda prompt: "2"
    labelled = {name: getattr(settings, name) for name in ("BENCHBENCH_LLM_SERVERS", "BENCHBENCH_LLM_KEYS")}
    survive(crew, replace(scenario, settings=labelled))
