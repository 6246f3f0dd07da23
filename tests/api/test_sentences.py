"""What is said of a refused request: what is wrong, where, and what to do; nothing of it in REST framework's words."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.functional import Promise
from rest_framework.serializers import BaseSerializer

from apps.api import urls  # imports all serializers
from apps.api.fields import StrictSerializer
from tests.api.callers import ROOT, Caller, Callers
from tests.api.test_datasets import PATH, questions

assert urls
COLLECTIONS = "/collections"


def readers(serializer: type[BaseSerializer] = StrictSerializer) -> Iterator[type[BaseSerializer]]:
    for subclass in serializer.__subclasses__():
        yield subclass
        yield from readers(subclass)


def parts(field: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, field
    if hasattr(field, "child"):
        yield from parts(field.child, f"{path}[]")
    for name, inner in getattr(field, "fields", {}).items():
        yield from parts(inner, f"{path}.{name}")


def test_no_field_of_a_request_has_stock_sentences() -> None:
    told = {
        path: code
        for reader in readers()
        for path, field in parts(reader(), reader.__name__)
        if type(field).__name__ != "_UnvalidatedField"  # of objects with any values: it refuses nothing
        for code, sentence in field.error_messages.items()
        if isinstance(sentence, Promise)  # REST framework's are translated
    }
    assert not told


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"page": "0"}, "page is too small: it must be at least 1."),
        ({"page": "1000001"}, "page is too large: it may be at most 1000000."),
        ({"per_page": "101"}, "per_page is too large: it may be at most 100."),
        ({"per_page": "ten"}, "per_page must be a whole number, not 'ten'."),
        (
            {"status_filter": "lost"},
            'status_filter cannot be "lost": choose one of pending, running, completed, failed, ',
        ),
    ],
)
def test_a_query_that_is_refused_is_told(callers: Callers, query: dict[str, str], sentence: str) -> None:
    answer = callers.owner.get("/benchmarks", **query)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(sentence)
    assert list(answer.json()["errors"]) == list(query)


@pytest.mark.parametrize(
    ("path", "body", "field", "sentence"),
    [
        (COLLECTIONS, {}, "name", "name is missing: state it."),
        (COLLECTIONS, {"name": None}, "name", "name is null: give it a value."),
        (COLLECTIONS, {"name": " "}, "name", "name is empty: write something there."),
        (COLLECTIONS, {"name": "n" * 201}, "name", "name has more than 200 characters: shorten it."),
        (COLLECTIONS, {"name": 7}, "name", "name must be a string, not a number."),
        (COLLECTIONS, {"title": "n"}, "title", "There is no key 'title' here; there are "),
        (COLLECTIONS, [], None, "The body is a list: send an object with "),
        ("/benchmarks/preview", {"mapping_id": "x"}, "mapping_id", "mapping_id must be an id, a UUID such as "),
        (
            "/auth/token",
            {"username": "u", "password": "p", "scope": []},
            "scope",
            'scope cannot be "[]": choose one of ',
        ),
    ],
)
def test_a_body_that_is_refused_is_told(callers: Callers, path: str, body: Any, field: str, sentence: str) -> None:
    answer = callers.owner.post(path, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    told = answer.json()["errors"][field][0] if field else answer.json()["detail"]
    assert told.startswith(sentence)
    assert told in answer.json()["detail"]


def test_a_key_is_told_where_it_stands(callers: Callers) -> None:
    made = callers.owner.post(COLLECTIONS, {"name": "n"}).json()
    documents = [{"external_id": "a", "text": "t"}, {"external_id": "b", "sections": [{"heading": 1}]}, "c"]
    errors = callers.owner.post(f"{COLLECTIONS}/{made['id']}/documents", {"documents": documents}).json()["errors"]
    assert errors["documents[1].sections[0].heading"] == [
        "documents[1].sections[0].heading must be a string, not a number."
    ]
    assert errors["documents[2]"][0].startswith("documents[2] is a string: send an object with ")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("", "You are not signed in: send Authorization: Bearer with a token of "),
        ("Bearer a b", "The header Authorization must be the word Bearer, a space, and one token."),
        ("Bearer abc", "The token is invalid or has expired: exchange the refresh token, or sign in again."),
        ("Bearer bb_abc", "The token is unknown, revoked or expired: make another in the admin."),
    ],
)
def test_who_is_not_known_is_told_how_to_be(db: None, header: str, sentence: str) -> None:
    answer = Client(headers={"Authorization": header} if header else {}).get(ROOT + PATH)
    assert answer.status_code == 401
    assert answer.json()["detail"].startswith(sentence)


def test_a_session_is_told_what_else_it_needs(callers: Callers) -> None:
    page = Client(enforce_csrf_checks=True)
    page.force_login(User.objects.get(pk=callers.owner.user.pk))
    answer = page.post(ROOT + COLLECTIONS, {"name": "n"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    assert "send the header X-CSRFToken" in answer.json()["detail"]


def test_an_address_with_a_slash_is_told_without_it(db: None) -> None:
    told = [Caller().get(path).json()["detail"] for path in (f"{PATH}/", "/no/such/", "/nothing")]
    assert told == [
        f"There is nothing at {ROOT}{PATH}/: no address ends in a slash, so ask for {ROOT}{PATH}.",
        f"There is nothing at {ROOT}/no/such/: /api/docs/ lists what is.",
        f"There is nothing at {ROOT}/nothing: /api/docs/ lists what is.",
    ]


def test_a_method_and_a_body_that_are_not_read_are_told_what_is(callers: Callers) -> None:
    ask = callers.owner.ask
    assert ask("PUT", PATH, {}).json()["detail"] == "PUT is not possible at this address: there is GET, POST."
    assert ask("POST", PATH, {}).json()["detail"] == (
        "The type application/json is not accepted here: send Content-Type: multipart/form-data."
    )
    send = callers.owner.client.post
    told = [
        send(f"{ROOT}{COLLECTIONS}", "name: n", content_type="text/yaml"),
        send(f"{ROOT}/benchmarks/preview", '{"name"', content_type="application/json"),
        send(ROOT + PATH, "x", content_type="multipart/form-data"),
        callers.owner.upload(PATH, questions("a"), name="n\0"),
        callers.owner.client.post(ROOT + PATH, {"name": "n", "file": "{}"}),
    ]
    assert [answer.json()["detail"].partition("(")[0] for answer in told] == [
        "The type text/yaml is not accepted here: send Content-Type: application/json or multipart/form-data.",
        "The body is not JSON: Expecting ':' delimiter ",
        "The form cannot be read: send multipart/form-data with the boundary that its header names.",
        "name holds a character that cannot be stored ",
        "file must be a file: send it as a part of the form that has a file name.",
    ]


def test_too_many_requests_are_told_in_seconds(callers: Callers, settings: Any) -> None:
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"read": (1, 3600)}
    callers.owner.get(PATH)
    refused = callers.owner.get(PATH)
    assert refused.json()["detail"] == f"Too many requests: wait {refused['Retry-After']} seconds, and send it again."
