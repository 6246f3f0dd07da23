"""Two writers of the same rows in opposite orders: none of their statements ends with a deadlock."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from apps.accounts.models import SignIn
from apps.collections.models import Collection, Document
from apps.collections.stubs import add_titled_ids, upsert_documents
from apps.engines import storing
from apps.engines.answers import Hit, Paths
from apps.engines.models import EngineAnswer
from apps.engines.records import Engine
from apps.engines.storing import Question, Reply, Search, store_replies
from apps.retrieval.encoders.vector_cache import TextVector, add_vectors, decode_vectors, find_vectors, trim_cache
from apps.retrieval.llms import answers
from apps.retrieval.models import CachedVector, LLMAnswer, VectorSpace
from benchbench.database import ordered
from benchbench.database.failures import DeadlockError, find_failure
from benchbench.database.ordered import delete_in_order, retry_deadlocks, update_in_order

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS, ROWS = 15, 400
Write = Callable[[list[str], int], object]


def engine_answers() -> Write:
    engine = Engine(alias="shop", url="http://127.0.0.1/", answer=Paths(id="id"))
    search = Search(engine, {}, 10)

    def write(names: list[str], turn: int) -> None:
        reply = Reply((Hit("a"),), turn, 1.0, 0.0, 0, timezone.now())
        store_replies(search, {name: (Question(name), reply) for name in names})
        if turn % 5 == 4:
            storing.trim_answers()

    return write


def llm_answers() -> Write:
    def write(names: list[str], turn: int) -> None:
        fields = {"provider": "a", "model": "b", "parameters": {}, "prompt": "c" * 100, "text": "d", "ms": 1.0}
        with transaction.atomic():
            LLMAnswer.objects.bulk_create(
                [LLMAnswer(key=f"{turn} {name}", **fields) for name in sorted(names)], ignore_conflicts=True
            )
        answers.trim_answers()

    return write


def documents(store: Callable[[Collection, dict[str, Any]], object], value: Any) -> Write:
    collection = Collection.objects.create(name="stub", kind=Collection.Kind.EXTERNAL)
    return lambda names, turn: store(collection, {f"{turn % 8} {name}": value for name in names})


def vectors() -> Write:
    space = VectorSpace.objects.create(encoder="a", revision="b", kind="document", dimension=2)
    vector = TextVector(np.array([1.0, 0.0], np.float32), 1.0)

    def write(names: list[str], turn: int) -> None:
        add_vectors(space, {f"{turn % 4} {name}": vector for name in names})
        CachedVector.objects.filter(text_hash=f"{turn % 4} {names[0]}").update(used_at=timezone.now())
        find_vectors(space, [f"{turn % 4} {name}" for name in names])
        decode_vectors(space, {f"{turn % 4} {name}": b"wrong" for name in names[:50]})
        trim_cache()

    CachedVector.objects.update(used_at=timezone.now() - timedelta(days=3))
    return write


def titles() -> Write:
    """Rows that several statements change and delete."""
    collection = Collection.objects.create(name="stub", kind=Collection.Kind.EXTERNAL)
    created = [Document(collection=collection, external_id=f"d{number}") for number in range(ROWS)]
    Document.objects.bulk_create(created)

    def write(names: list[str], turn: int) -> None:
        rows = Document.objects.filter(collection=collection, external_id__in=[f"d{name}" for name in names])
        with transaction.atomic():
            update_in_order(rows.order_by("-pk"), title=str(turn))
            update_in_order(rows, title="")
        if turn == ROUNDS - 1:
            delete_in_order(rows)

    return write


def sign_ins() -> Write:
    user = User.objects.create_user("bea")

    def write(names: list[str], turn: int) -> None:
        past = timezone.now() - timedelta(days=1)
        SignIn.objects.bulk_create(
            SignIn(user=user, jti=f"{threading.get_ident()} {turn} {name}"[-32:], expires_at=past) for name in names
        )
        delete_in_order(SignIn.objects.filter(expires_at__lt=timezone.now()))

    return write


WRITERS: dict[str, Callable[[], Write]] = {
    "answers of engines": engine_answers,
    "answers of language models": llm_answers,
    "documents of engines": lambda: documents(add_titled_ids, "A title"),
    "documents of rankings": lambda: documents(upsert_documents, {"uri": "a"}),
    "vectors": vectors,
    "rows that change": titles,
    "sign-ins": sign_ins,
}


def run_both(write: Write) -> list[BaseException]:
    """Write all rows in both orders at once, ROUNDS times. Return the errors."""
    names = [f"{number:04}" for number in range(ROWS)]
    gate, errors = threading.Barrier(2), []

    def work(rows: list[str]) -> None:
        try:
            for turn in range(ROUNDS):
                gate.wait(60)
                try:
                    write(rows, turn)
                except OperationalError as error:
                    errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (names, names[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("writer", WRITERS)
def test_two_writers_never_deadlock(writer, monkeypatch, settings):
    settings.BENCHBENCH_ENGINE_CACHE_BYTES = settings.BENCHBENCH_LLM_CACHE_BYTES = 20_000
    settings.BENCHBENCH_VECTOR_CACHE_BYTES = 2000
    monkeypatch.setattr(ordered, "ATTEMPTS", 1)
    assert run_both(WRITERS[writer]()) == []


@pytest.mark.parametrize("inside", [False, True])
def test_work_that_deadlocked_is_done_again(inside):
    """Two threads lock two rows in opposite orders; whichever PostgreSQL ends, both are done in the end."""
    users = [User.objects.create_user(name) for name in "ab"]
    gate, finished = threading.Barrier(2), []

    def lock(order: list[User]) -> None:
        attempts = []

        def work() -> None:
            attempts.append(1)
            User.objects.filter(pk=order[0].pk).update(first_name=order[0].username)
            if len(attempts) == 1:
                gate.wait(60)
            User.objects.filter(pk=order[1].pk).update(first_name=order[1].username)

        try:
            if inside:
                with transaction.atomic():
                    retry_deadlocks(work)
            else:
                retry_deadlocks(work)
            finished.append(len(attempts))
        finally:
            connection.close()

    threads = [threading.Thread(target=lock, args=(order,)) for order in (users, users[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(finished) == 2
    assert max(finished) > 1


def test_errors_other_than_deadlocks_are_raised_at_once():
    attempts = []

    def work() -> None:
        attempts.append(1)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 1")
            cursor.execute("SELECT pg_sleep(1)")

    with pytest.raises(OperationalError) as raised:
        retry_deadlocks(work)
    assert attempts == [1]
    assert not isinstance(find_failure(raised.value), DeadlockError)
    assert not EngineAnswer.objects.exists()
