"""How much one user may have started."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from apps.benchmarks.launching import launch
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.launching import QUOTAS, QuotaError
from apps.operations.models import Operation, Status
from apps.retrieval.indexing import build_index, create_index
from benchbench.models import OwnedModel
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark

Kind = Operation.Kind
Starts = Callable[..., Any]


def a_benchmark(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    return create_benchmark(library, name="third", matrix={"search_modes": ["sparse"]}, owner=owner), launch


def an_index(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    return create_index(library.collection, name="third", owner=owner), build_index


def a_mapping(library: Mapping, owner: User) -> tuple[OwnedModel, Starts]:
    library.owner = owner
    library.save()
    return library, resolve


@pytest.mark.parametrize(
    ("kind", "made", "told"),
    [
        (Kind.BENCHMARK, a_benchmark, "benchmarks running"),
        (Kind.INDEX, an_index, "indexes being built"),
        (Kind.RESOLVE, a_mapping, "mappings being resolved"),
    ],
)
def test_a_user_starts_so_many_of_a_kind(db: None, settings: Any, kind: Kind, made: Any, told: str) -> None:
    setting = QUOTAS[kind][1]
    setattr(settings, setting, 2)
    ada, bob = User.objects.create_user("ada"), User.objects.create_user("bob")
    subject, start = made(make_library(documents=4, queries=1), ada)
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    before = [subject.updated_at, getattr(subject, "status", None)]
    for status in (Status.RUNNING, Status.PENDING, Status.COMPLETED):
        Operation.objects.create(kind=kind, subject_id=uuid4(), started_by=ada, status=status)
    sentence = f"ada has 2 {told}, and 2 is the most for one user .{setting}."
    with pytest.raises(QuotaError, match=sentence):
        start(subject, by=ada)
    with pytest.raises(QuotaError, match=sentence):
        start(subject)  # a command, which acts for the owner
    subject.refresh_from_db()
    assert [subject.updated_at, getattr(subject, "status", None)] == before
    start(subject, by=bob)  # what ada owns counts for bob, who starts it
    assert Operation.objects.get(subject_id=subject.pk).started_by == bob
