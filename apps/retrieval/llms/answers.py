"""Cache of answers of language models: the same request is free and repeatable.

The key of an answer covers server, model, the model's revision if its server reports one, prompt, and the request's
options (temperature, tokens, seed). The first accepted answer stays. The least recently used ones are deleted above
BENCHBENCH_LLM_CACHE_BYTES.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from django.conf import settings
from django.db import connection

from apps.retrieval.models import LLMAnswer

TOUCH = "UPDATE retrieval_llmanswer SET used_at = now() WHERE id = %s AND used_at < now() - interval '1 day'"
# An array: PostgreSQL may evaluate an IN (…) again for each row, and would then delete more than the limit.
TRIM = """
    DELETE FROM retrieval_llmanswer WHERE id = ANY(ARRAY(
        SELECT id FROM retrieval_llmanswer JOIN (
            SELECT id, sum(octet_length(prompt) + octet_length(text)) OVER (ORDER BY used_at DESC, id DESC) AS bytes
            FROM retrieval_llmanswer
        ) AS sizes USING (id) WHERE bytes > %s ORDER BY key FOR UPDATE OF retrieval_llmanswer SKIP LOCKED
    ))
"""

answers_bypassed: ContextVar[bool] = ContextVar("answers_bypassed", default=False)
answers_read_only: ContextVar[bool] = ContextVar("answers_read_only", default=False)


def bypass_answers() -> AbstractContextManager[None]:
    """Bypass the cache in this block: answers are neither read from it nor stored."""
    return _set_true(answers_bypassed)


def store_no_answers() -> AbstractContextManager[None]:
    """Store no new answers in this block; cached answers are still used."""
    return _set_true(answers_read_only)


@contextmanager
def _set_true(variable: ContextVar[bool]) -> Iterator[None]:
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


def find_answer(key: str) -> LLMAnswer | None:
    """Return the cached answer of a key, or None, and update its time of use."""
    answer = LLMAnswer.objects.filter(key=key).first()
    if answer is not None:
        with connection.cursor() as cursor:
            cursor.execute(TOUCH, [answer.pk])
    return answer


def store_answer(answer: LLMAnswer) -> LLMAnswer:
    """Store an answer unless its key has one already. Return the stored answer."""
    LLMAnswer.objects.bulk_create([answer], ignore_conflicts=True)
    return LLMAnswer.objects.filter(key=answer.key).first() or answer


def trim_answers() -> int:
    """Delete the least recently used answers above BENCHBENCH_LLM_CACHE_BYTES. Return their number."""
    with connection.cursor() as cursor:
        cursor.execute(TRIM, [settings.BENCHBENCH_LLM_CACHE_BYTES])
        return int(cursor.rowcount)
