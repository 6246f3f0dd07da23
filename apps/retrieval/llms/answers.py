"""Answers of language models, kept: asking the same again is free, and gives the same.

An answer is known by server and model, the model's revision where its server tells one, prompt, and what the server is
told (temperature, tokens, seed). The first that its asker accepted stays. The longest unused go when they take more
than BENCHBENCH_LLM_CACHE_BYTES.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from django.conf import settings
from django.db import connection

from apps.retrieval.models import LLMAnswer

TOUCH = "UPDATE retrieval_llmanswer SET used_at = now() WHERE id = %s AND used_at < now() - interval '1 day'"
# An array: the rows of an IN (…) may be chosen anew for every row that is looked at, and more would go than the limit.
TRIM = """
    DELETE FROM retrieval_llmanswer WHERE id = ANY(ARRAY(
        SELECT id FROM (
            SELECT id, sum(octet_length(prompt) + octet_length(text)) OVER (ORDER BY used_at DESC, id DESC) AS bytes
            FROM retrieval_llmanswer
        ) AS kept WHERE bytes > %s
    ))
"""

answers_passed_by: ContextVar[bool] = ContextVar("answers_passed_by", default=False)
answers_not_kept: ContextVar[bool] = ContextVar("answers_not_kept", default=False)


def passing_by_answers() -> AbstractContextManager[None]:
    """Neither read nor keep answers while this lasts: whoever asks hears what the model says now."""
    return _true(answers_passed_by)


def keeping_no_answers() -> AbstractContextManager[None]:
    """Keep nothing of what is answered while this lasts; what was kept before still answers."""
    return _true(answers_not_kept)


@contextmanager
def _true(variable: ContextVar[bool]) -> Iterator[None]:
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


def find_answer(key: str) -> LLMAnswer | None:
    """Return the answer that is kept under a key, used from now on."""
    kept = LLMAnswer.objects.filter(key=key).first()
    if kept is not None:
        with connection.cursor() as cursor:
            cursor.execute(TOUCH, [kept.pk])
    return kept


def keep_answer(answer: LLMAnswer) -> LLMAnswer:
    """Keep an answer, and return the one that is kept under its key: another's, where that came first."""
    LLMAnswer.objects.bulk_create([answer], ignore_conflicts=True)
    return LLMAnswer.objects.filter(key=answer.key).first() or answer


def trim_answers() -> int:
    """Delete the answers longest unused until BENCHBENCH_LLM_CACHE_BYTES hold the rest; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(TRIM, [settings.BENCHBENCH_LLM_CACHE_BYTES])
        return int(cursor.rowcount)
