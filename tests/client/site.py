"""What a client needs of a live site: a user, a token and a library."""

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
from tests.client.fruit import ENCODER, PASSWORD, documents


@pytest.fixture
def ada(make_staff: Any, settings: Any, transactional_db: None) -> User:
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
    """A collection of no one's, with an index."""
    collection = create_collection("library")
    import_documents(collection, [DocumentRecord(**document) for document in documents()])
    collection.refresh_from_db()
    wait(build_index(create_index(collection, name="fruits", encoder=ENCODER)))
    return collection
