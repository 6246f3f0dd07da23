"""Questions as presets of the form of a new benchmark, and clones: always valid, with their costs or a reason."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.execution.defining.previewing import preview
from apps.execution.defining.questions import QUESTIONS, list_offers
from apps.mappings.models import Mapping
from apps.records.models import Benchmark
from apps.retrieval.indexing import create_index
from tests.created import build, create_benchmark, run_benchmark
from tests.library import ENCODER
from tests.pages import one_line
from tests.retrieval.llm_server import MODEL, llm_server

ADD = "admin:benchmarks_benchmark_add"
FOLDED = {
    "search_modes": ["dense", "hybrid"],
    "use_reranker": [False, True],
    "rerank_depths": [None, 5],
    "top_k_values": [20],
    "ann": ["exact", "hnsw(ef_search=60, storage=halfvec)"],
    "fusion": ["rrf", "weighted"],
    "weights": [None, [0.75, 0.25]],
    "score_thresholds": [None, 0.5],
    "k_values_for_metrics": [3, 10],
}


@pytest.fixture
def user(admin_client: Client) -> User:
    return User.objects.get(username="admin")


def values_of(page: Any) -> dict[str, Any]:
    """Return what the form of a page would send as it is shown."""
    fields = {name: page.context["form"][name].value() for name in page.context["form"].fields}
    first = {"execution": "shared", "unresolved": "count", "empty_queries": "zero"}  # of the choices
    return first | {name: value for name, value in fields.items() if value not in (None, False)}


def test_every_question_is_answered_by_valid_matrix(
    library: Mapping,
    admin_client: Client,
    user: User,
    settings: Any,
    tmp_path: Path,
    django_assert_max_num_queries: Any,
) -> None:
    engine = "{url: 'http://search.example', query: {q: '{query}'}, answer: {id: id}}"
    (tmp_path / "engines.yaml").write_text(f"engines:\n  old: {engine}\n  new: {engine}\n")
    settings.BENCHBENCH_ENGINES = str(tmp_path / "engines.yaml")
    build(create_index(library.collection, name="levels", strategy="lod_embed", encoder=ENCODER))
    build(create_index(library.collection, name="half", encoder=ENCODER))
    library.collection.indexes.filter(name="half").update(precision="bfloat16")
    with llm_server() as server:
        settings.BENCHBENCH_LLM_SERVERS = [f"here=ollama+{server.url}"]
        offers = list_offers(library, user)
        with django_assert_max_num_queries(26):
            admin_client.get(reverse(ADD), {"mapping": library.pk})
        previews = [
            preview(library, offer.matrix or {}, owner=user, execution=offer.question.execution) for offer in offers
        ]
    assert [offer.question.key for offer in offers] == list(QUESTIONS)
    assert (
        [offer.runs for offer in offers]
        == [len(planned.labels) for planned in previews]
        == [
            *(3, 6, 3, 4, 4, 9, 6, 30, 2),
            *(2, 4, 2),
        ]
    )
    for offer, planned in zip(offers, previews, strict=True):
        assert offer.seconds == pytest.approx(planned.estimate_seconds, rel=0.2), offer.question.key
    assert (offers[-2].matrix or {})["llms"] == [f"here:{MODEL}"]
    assert (offers[-1].matrix or {})["engines"] == ["old", "new"]


def test_unanswerable_question_says_why_without_link(library: Mapping, admin_client: Client) -> None:
    library.collection.indexes.update(encoder="", lexical_index=None)
    response = admin_client.get(reverse(ADD), {"mapping": library.pk})
    page = response.content.decode()
    for problem in (
        "No ready index has both vectors and words.",
        "The reranker late-interaction needs an index with an encoder.",
        "The collection has only one ready index.",
        "No ready index has vectors.",
        "No ready index has BM25.",
        "No two ready indexes differ in precision alone.",
        "All ready indexes have the strategy flat.",
        "No language model server is configured: set BENCHBENCH_LLM_SERVERS.",
    ):
        assert problem in page
    assert "question=" not in page
    assert f"{reverse('admin:index_grid')}?collection={library.collection_id}" in page
    assert response.context["chosen"] is None


def test_question_fills_form_that_starts_it(
    library: Mapping, admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(26):
        page = admin_client.get(reverse(ADD), {"mapping": library.pk, "question": "approximation"})
    assert 'aria-current="true">How approximate may it be?' in one_line(page.content.decode())
    answer = admin_client.post(reverse(ADD), values_of(page) | {"start": "1"})
    assert answer.status_code == 302, answer.context["form"].errors
    benchmark = Benchmark.objects.get()
    assert (benchmark.name, benchmark.status) == ("How approximate may it be?", "running")
    assert benchmark.matrix["ann"] == ["exact", *(f"hnsw(ef_search={effort})" for effort in (100, 200, 400))]


@pytest.mark.parametrize(
    ("key", "axis", "execution"),
    [("compression", "ann", "shared"), ("filters", "filter_shares", "isolated"), ("load", "rates", "isolated")],
)
def test_questions_of_scale_state_axis_and_execution(
    library: Mapping, admin_client: Client, key: str, axis: str, execution: str
) -> None:
    page = admin_client.get(reverse(ADD), {"mapping": library.pk, "question": key})
    answer = admin_client.post(reverse(ADD), values_of(page))
    assert answer.status_code == 302, answer.context["form"].errors
    benchmark = Benchmark.objects.get()
    assert (benchmark.execution, benchmark.matrix["ann"][0]) == (execution, "exact")
    assert len(benchmark.matrix[axis]) > 2


def test_detectable_difference_comes_from_earlier_benchmark(library: Mapping, admin_client: Client, user: User) -> None:
    assert list_offers(library, user)[0].foresight.detectable is None
    assert "not known yet" in admin_client.get(reverse(ADD), {"mapping": library.pk}).content.decode()
    earlier = run_benchmark(library, name="the first", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    modes, reranking, *_ = list_offers(library, user)
    assert modes.foresight.prior is not None
    assert modes.foresight.prior.benchmark == earlier
    error = modes.foresight.prior.deviation / 12**0.5
    assert modes.foresight.detectable == pytest.approx((2.394 + 0.842) * error, rel=1e-3)  # Bonferroni of 3 pairs
    assert (reranking.foresight.detectable or 0) > (modes.foresight.detectable or 0), "it compares more pairs"
    fields = values_of(admin_client.get(reverse(ADD), {"mapping": library.pk}))
    displayed = one_line(admin_client.post(reverse("admin:benchmark_preview"), fields).content.decode())
    assert "between any two runs with a power of 80 %" in displayed
    assert reverse("admin:benchmark_results", args=[earlier.pk]) in displayed


def test_clone_repeats_every_value_of_the_matrix(library: Mapping, admin_client: Client) -> None:
    options = {"measures": ["ERR@5"], "unresolved": "drop", "seed": 5, "execution": "isolated", "runs_per_query": 2}
    original = create_benchmark(library, name="wide", matrix=FOLDED, **options)
    original.refresh_from_db()
    page = admin_client.get(reverse(ADD), {"from": original.pk})
    admin_client.post(reverse(ADD), values_of(page))
    copy = Benchmark.objects.get(name="wide, copy")
    for field in ("matrix", "measures", "unresolved", "seed", "execution", "runs_per_query", "total_runs"):
        assert getattr(copy, field) == getattr(original, field), field


def test_benchmark_runs_again_on_the_newest_index(library: Mapping, admin_client: Client) -> None:
    original = create_benchmark(library, name="old", matrix={"indexes": ["keywords"], "search_modes": ["dense"]})
    page = admin_client.get(reverse("admin:benchmark_results", args=[original.pk])).content.decode()
    for button in ("Clone", "Again on the newest index"):
        assert button in page
    again = f"{reverse(ADD)}?from={original.pk}&newest=1"
    assert "It searches keywords again, the newest ready version." in admin_client.get(again).content.decode()
    newer = build(create_index(library.collection, name="keywords", encoder=ENCODER))
    response = admin_client.get(again)
    assert f"It searches {newer}; old searched keywords." in response.content.decode()
    admin_client.post(reverse(ADD), values_of(response))
    assert Benchmark.objects.get(name="old, newest index").runs.get().index == newer
