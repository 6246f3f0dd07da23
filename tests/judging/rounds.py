"""Rounds for tests: runs of a small library with texts, and a benchmark whose every pair has a true grade."""

import random
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.datasets.models import Query
from apps.judging.grading import grade_item
from apps.judging.llm.launching import build_judge
from apps.judging.llm.prompting import build_prompt, read_answer
from apps.judging.models import Grade, LLMJudge, Round, RoundItem, Slot
from apps.judging.opening import RoundOptions, open_round
from apps.judging.settling.deciding import renew
from apps.judging.settling.renewing import RoundStatus, load_round_status
from apps.mappings.resolving import resolve
from apps.records.models import Benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.kept import made_once
from tests.rankings import add_ranking

TITLES = ("Pears", "Plums", "Figs", "Apples", "Cherries", "Grapes")
FIRST = {"q1": (1, 2, 3, 4), "q2": (2, 3, 5, 6)}  # numbers of documents, best first
SECOND = {"q1": (3, 1, 5, 6), "q2": (6, 2, 4, 1)}
JUDGED = {"q1": [({"document_id": "d1"}, 2)], "q2": [({"document_id": "d2"}, 1)]}


@made_once
def make_compared() -> Benchmark:
    """Return a benchmark of two runs over two queries; of each query one document is judged."""
    documents = [{"title": title, "text": f"{title} are fruit."} for title in TITLES]
    mapping = make_mapping(make_dataset(JUDGED), make_collection("library", documents))
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping, [0.5, 0.6])
    ids = list(mapping.collection.documents.order_by("external_id").values_list("pk", flat=True))
    for run, rankings in zip(benchmark.runs.order_by("run_order"), (FIRST, SECOND), strict=True):
        for key, numbers in rankings.items():
            query = Query.objects.get(dataset=mapping.dataset, key=key)
            add_ranking(
                run, query, [ids[number - 1] for number in numbers], scores=[1 / number for number in range(1, 5)]
            )
    return benchmark


SUBJECTS = ("Pear trees", "Plum jam", "Fig leaves", "Apple cider", "Cherry stones", "Grape skins", "Quince paste")
KEEPERS = ("in cellars", "on slopes", "by the sea", "under glass", "in clay", "after frost")


@made_once
def make_orchard() -> Benchmark:
    """Return a benchmark of two runs over four queries, with twelve documents of many sentences: 44 pairs to judge."""
    documents = [{"title": f"{a} {b}", "text": _story(a, b)} for a in SUBJECTS[:4] for b in KEEPERS[:3]]
    names = [f"q{number}" for number in range(1, 5)]
    mapping = make_mapping(
        make_dataset({name: [({"document_id": f"d{index}"}, 2)] for index, name in enumerate(names, start=1)}),
        make_collection("orchard", documents),
    )
    dataset = mapping.dataset
    for name, subject in zip(names, SUBJECTS, strict=False):
        about = f"Which {subject.lower()} keep longest?"
        requests = {"description": "Advice for somebody who stores them at home.", "narrative": ""}
        Query.objects.filter(dataset=dataset, key=name).update(
            text=about, metadata=requests, expected_answer=f"{subject} in cellars.", filters={"language": "en"}
        )
    resolve(mapping)
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping, [0.5, 0.6], name="Which search keeps?")
    ids = list(mapping.collection.documents.order_by("id").values_list("pk", flat=True))
    for run, order in zip(benchmark.runs.order_by("run_order"), (1, -1), strict=True):
        for query in dataset.queries.all():
            add_ranking(run, query, ids[::order], scores=[1 / rank for rank in range(1, 13)])
    return benchmark


def _story(subject: str, location: str) -> str:
    first = f"{subject} {location} keep for about four months, if nobody moves them. "
    return first + " ".join(
        f"Of {subject.lower()}, chapter {number} tells how they are kept {location}." for number in range(40)
    )


def make_judges(*names: str) -> list[User]:
    return [User.objects.create_user(name, is_staff=True) for name in names]


def open_for(benchmark: Benchmark, judges: Sequence[User], *, owner: User | None = None, **options: Any) -> Round:
    declared = {"name": "fruit", "order": "depth", "uniform_share": 0.0} | options
    runs = list(benchmark.runs.order_by("run_order"))
    return open_round(runs, RoundOptions(**declared), judges=judges, owner=owner)


def state_now(opened: Round) -> RoundStatus:
    """Return the state of a round by all its grades, with or without a worker."""
    renew(opened)
    return load_round_status(opened)


def give_back(opened: Round, judge: User) -> None:
    """End the leases of a judge, as their time does."""
    past = timezone.now() - timedelta(seconds=1)
    Slot.objects.filter(round=opened, judge=judge, done=False).update(until=past)


def names_of(items: Sequence[RoundItem]) -> list[str]:
    """Return the items as `q1 d3`."""
    return [f"{item.query.key} {item.document.external_id}" for item in items]


QUERIES, DOCUMENTS, RANKED = 40, 12, 5
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
            add_ranking(run, Query.objects.get(dataset=mapping.dataset, key=key), ranked[:RANKED])
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
    judge = build_judge(opened, "ollama:llama3")
    judge.save()
    answer, graded_at = answering(errors), timezone.now()
    Grade.objects.bulk_create(
        Grade(
            item=item,
            source=Grade.Source.LLM,
            judge_name=judge.name,
            grade=read_answer(answer(build_prompt(opened, item)), opened.scale),
            graded_at=graded_at,
        )
        for item in opened.items.select_related("query", "document", "chunk")
    )
    return judge


def page(client: Client, name: str, opened: Round, query: str = "") -> str:
    answer = client.get(reverse(f"admin:{name}", args=[opened.pk]) + query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def signed_in(client: Client, user: User) -> Client:
    apps = ("judging", "benchmarks", "datasets", "mappings", "collections")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=apps))
    user.user_permissions.remove(*Permission.objects.filter(codename__startswith="view_all"))
    client.force_login(user)
    return client


def send(client: Client, round: Round, *message: dict[str, Any], have: tuple[int, ...] = (), count: int = 8) -> Any:
    entries = [{"key": str(index), **entry} for index, entry in enumerate(message)]
    url = reverse("admin:round_exchange", args=[round.pk])
    return client.post(url, {"entries": entries, "present_ids": have, "count": count}, content_type="application/json")
