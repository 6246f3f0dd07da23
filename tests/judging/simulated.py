"""A benchmark whose every pair has a true grade, for people and models that know it more or less."""

import random
import re
from collections.abc import Callable

from django.contrib.auth.models import User
from django.utils import timezone

from apps.benchmarks.models import Benchmark
from apps.datasets.models import Query
from apps.judging.grading import grade_item
from apps.judging.llm.launching import identity_of
from apps.judging.llm.prompting import prompt_of, read_answer
from apps.judging.models import Grade, LLMJudge, Round, RoundItem
from apps.mappings.resolving import resolve
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.rankings import add_ranking

QUERIES, DOCUMENTS, DEPTH = 40, 12, 5
SIZE = 60  # of a calibration sample
SKILLS = (0.9, 0.6, 0.1)  # how often each run puts what is relevant first


def true_grade(query: int, document: int) -> int:
    """Return the grade of a pair: 0 of most, else 1 or 2."""
    return random.Random(f"{query} {document}").choice((0, 0, 1, 2))


@made_once
def make_simulated() -> Benchmark:
    """Return a benchmark of three runs, of falling skill, over 40 queries; of each query one document is judged."""
    documents = [{"title": f"Document {number}", "text": "Words."} for number in range(1, DOCUMENTS + 1)]
    truths = {
        f"q{query:02}": [({"document_id": f"d{query % DOCUMENTS + 1}"}, true_grade(query, query % DOCUMENTS + 1))]
        for query in range(QUERIES)
    }
    mapping = make_mapping(make_dataset(truths), make_collection("simulated", documents))
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping, [0.5] * len(SKILLS))
    ids = dict(mapping.collection.documents.values_list("external_id", "pk"))
    for run, skill in zip(benchmark.runs.order_by("run_order"), SKILLS, strict=True):
        for key in truths:
            ranked = [ids[f"d{number}"] for number in _ranking(int(key[1:]), skill)]
            add_ranking(run, Query.objects.get(dataset=mapping.dataset, key=key), ranked[:DEPTH])
    return benchmark


def _ranking(query: int, skill: float) -> list[int]:
    draw = random.Random(f"{query} {skill}")
    return sorted(
        range(1, DOCUMENTS + 1),
        key=lambda number: -true_grade(query, number) if draw.random() < skill else draw.random() - 1,
    )


def grade_of(item: RoundItem) -> int:
    return true_grade(int(item.query.key[1:]), int(item.document.external_id[1:]))


def answering(errors: float) -> Callable[[str], str]:
    """Return a model that reads query and document of the prompt, and errs in a share of the pairs."""

    def answer(prompt: str) -> str:
        query, document = re.search(r" QUERY\n.*?(\d+)", prompt), re.search(r"Document (\d+)", prompt)
        assert query
        assert document
        draw = random.Random(f"model {query[1]} {document[1]}")
        if draw.random() < errors:
            return str(draw.choice((0, 1, 2)))
        return str(true_grade(int(query[1]), int(document[1])))

    return answer


def grade_sample(opened: Round, judge: User, count: int | None = None) -> None:
    """Let a judge give the first pairs of the calibration sample their true grades."""
    rows = opened.calibration_items.order_by("place").select_related("item__query", "item__document")
    for row in rows[:count]:
        grade_item(opened, row.item_id, judge, grade=grade_of(row.item))


def judged_by_model(opened: Round, errors: float = 0.3) -> LLMJudge:
    """Return a model that judged the whole round, without asking its server for each answer."""
    judge = identity_of(opened, "ollama:llama3")
    judge.save()
    answer, graded_at = answering(errors), timezone.now()
    Grade.objects.bulk_create(
        Grade(
            item=item,
            source=Grade.Source.LLM,
            judge_name=judge.name,
            grade=read_answer(answer(prompt_of(opened, item)), opened.scale),
            graded_at=graded_at,
        )
        for item in opened.items.select_related("query", "document", "chunk")
    )
    return judge
