"""A live site with a worker, and what a client brings to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import global_settings
from django.contrib.auth.models import User

from apps.accounts.tokens import issue_token
from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from tests.admin.conftest import make_staff  # noqa: F401 (a fixture)

PASSWORD = "correct horse battery staple"
ENCODER = "keyword:apple,pear,plum"
LIBRARY = {"d1": "apple apple", "d2": "apple pear", "d3": "pear pear", "d4": "plum pear", "d5": "plum plum"}
JUDGED = {"apple": {"d1": 3, "d2": 1}, "pear": {"d3": 3, "d2": 1, "d4": 1}, "plum": {"d5": 3, "d4": 1, "gone": 2}}


def documents() -> list[dict[str, Any]]:
    return [{"external_id": key, "title": key, "text": text} for key, text in LIBRARY.items()]


def questions(**metadata: Any) -> dict[str, Any]:
    """Return a dataset of schema 1.0: a query for each fruit, one judgment of which names no document."""
    queries = [
        {
            "query_key": fruit,
            "query_text": fruit,
            "relevant_docs": [
                {"doc_ref": {"document_id": key}, "relevance_grade": grade} for key, grade in judged.items()
            ],
        }
        for fruit, judged in JUDGED.items()
    ]
    return {"schema_version": "1.0", "metadata": metadata, "queries": queries}


@pytest.fixture
def questions_file(tmp_path: Path) -> Path:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(questions()))
    return file


@pytest.fixture
def ada(make_staff: Any, settings: Any, transactional_db: None) -> User:  # noqa: F811
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS  # the served site knows no other
    user = make_staff("ada")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def token(ada: User) -> str:
    _, secret = issue_token(ada, name="pipeline", scope="write")
    return secret


@pytest.fixture
def library(transactional_db: None) -> Collection:
    """A collection of nobody's, with an index."""
    collection = create_collection("library")
    import_documents(collection, [DocumentRecord(**document) for document in documents()])
    collection.refresh_from_db()
    wait(build_index(create_index(collection, name="fruits", encoder=ENCODER)))
    return collection
