"""Numbered questions to declared engines, asked as an arm asks them."""

from django.utils import timezone

from apps.engines.asking import ask_all
from apps.engines.storing import Question
from benchbench.ir.planning.engine import EngineSetting


def questions(number):
    return [Question(f"query {index}") for index in range(number)]


def ask(number=3, depth=10, *, setting="shop", since=None, check=lambda: None, **options):
    since = since or timezone.now()
    return ask_all(EngineSetting.parse(setting), questions(number), depth, since=since, check=check, **options)


ANSWER = {"hits": "hits", "id": "id", "score": "score", "title": "title", "total": "found"}


def shop(url, **options):
    """The keys of an engine at an address."""
    query = {"q": "{query}", "size": "{size}", "offset": "{offset}"}
    return {"version": "1", "private": True, "url": url, "query": query, "answer": ANSWER, **options}
