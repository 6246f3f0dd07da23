"""The examples of the schema: what a walk through the API asked and was answered."""

import json
import os
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from apps.api.openapi import EXAMPLES
from tests.api.callers import Caller
from tests.api.recording import Walk
from tests.api.story import MODEL, STAND_IN, tell
from tests.api.test_openapi import CHECKED_IN

RECORD = "BENCHBENCH_RECORD_EXAMPLES"  # `make openapi` sets it: then they are written anew


def test_the_examples_are_what_was_asked_and_answered(db: None) -> None:
    """Every operation is done once: none is without an example, and none has one that would be refused.

    Sentences and numbers of answers may be those of an older walk; keys and types may not.
    """
    walk = Walk(ada(), CHECKED_IN, words={STAND_IN: MODEL})
    tell(walk)
    walked = walk.examples | {"errors": dict(sorted(walk.errors.items()))}
    if RECORD in os.environ:
        write(walked)
    kept = {file.stem: json.loads(file.read_text()) for file in EXAMPLES.glob("*.json")}
    drifted = sorted(name for name in kept | walked if lasting(kept.get(name)) != lasting(walked.get(name)))
    assert not drifted, f"{drifted}: run `make openapi` and commit what it writes; tests/api/story.py asks them."


def ada() -> Caller:
    """Return the caller of the story, in a database where numbers begin as they do each time."""
    with connection.cursor() as cursor:
        for table in ("auth_user", "datasets_query", "datasets_judgment", "judging_rounditem"):
            cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH 7")
    return Caller(User.objects.create_superuser("ada", password="correct horse battery staple"))


def write(walked: dict[str, Any]) -> None:
    for file in EXAMPLES.glob("*.json"):
        file.unlink()
    for name, example in walked.items():
        (EXAMPLES / f"{name}.json").write_text(json.dumps(example, indent=1, ensure_ascii=False) + "\n")


def lasting(example: Any) -> Any:
    """Return what was asked, and the shape of what was answered."""
    if example is None or "answered" not in example:
        return shape(example)
    return example | {"answered": shape(example["answered"])}


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
