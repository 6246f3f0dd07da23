"""Sentences about refused requests: what is wrong, and where."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.api import urls  # imports all serializers
from tests.api.callers import ROOT, Caller, Callers
from tests.api.test_datasets import PATH, questions

assert urls
COLLECTIONS = "/collections"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"page": "0"}, "page: Ensure this value is greater than or equal to 1."),
        ({"page": "1000001"}, "page: Ensure this value is less than or equal to 1000000."),
        ({"per_page": "101"}, "per_page: Ensure this value is less than or equal to 100."),
        ({"per_page": "ten"}, "per_page: A valid integer is required."),
        (
            {"status_filter": "lost"},
            'status_filter: "lost" is not a valid choice.',
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
        (COLLECTIONS, {}, "name", "This field is required."),
        (COLLECTIONS, {"name": None}, "name", "This field may not be null."),
        (COLLECTIONS, {"name": " "}, "name", "This field may not be blank."),
        (COLLECTIONS, {"name": "n" * 201}, "name", "Ensure this field has no more than 200 characters."),
        (COLLECTIONS, {"name": 7}, "name", "Not a valid string."),
        (COLLECTIONS, {"title": "n"}, "title", "Unknown key: use name, description."),
        (COLLECTIONS, [], None, "Invalid data. Expected a dictionary, but got list."),
        ("/benchmarks/preview", {"mapping_id": "x"}, "mapping_id", "Must be a valid UUID."),
        (
            "/auth/token",
            {"username": "u", "password": "p", "scope": []},
            "scope",
            '"[]" is not a valid choice.',
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
    assert errors["documents[1].sections[0].heading"] == ["Not a valid string."]
    assert errors["documents[2]"] == ["Invalid data. Expected a dictionary, but got str."]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("", "Authentication credentials were not provided."),
        ("Bearer a b", "Authorization header must contain two space-delimited values"),
        ("Bearer abc", "Given token not valid for any token type"),
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
    assert answer.json()["detail"] == "CSRF Failed: CSRF cookie not set."


def test_an_address_with_a_slash_is_told_without_it(db: None) -> None:
    told = [Caller().get(path).json()["detail"] for path in (f"{PATH}/", "/no/such/", "/nothing")]
    assert told == [
        f"There is nothing at {ROOT}{PATH}/: no address ends in a slash, so ask for {ROOT}{PATH}.",
        f"There is nothing at {ROOT}/no/such/: /api/docs/ lists what is.",
        f"There is nothing at {ROOT}/nothing: /api/docs/ lists what is.",
    ]


def test_a_method_and_a_body_that_are_not_read_are_told_what_is(callers: Callers) -> None:
    ask = callers.owner.ask
    assert ask("PUT", PATH, {}).json()["detail"] == 'Method "PUT" not allowed.'
    assert ask("POST", PATH, {}).json()["detail"] == ('Unsupported media type "application/json" in request.')
    send = callers.owner.client.post
    told = [
        send(f"{ROOT}{COLLECTIONS}", "name: n", content_type="text/yaml"),
        send(f"{ROOT}/benchmarks/preview", '{"name"', content_type="application/json"),
        send(ROOT + PATH, "x", content_type="multipart/form-data"),
        callers.owner.upload(PATH, questions("a"), name="n\0"),
        callers.owner.client.post(ROOT + PATH, {"name": "n", "file": "{}"}),
    ]
    assert [answer.json()["detail"].partition("(")[0] for answer in told] == [
        'Unsupported media type "text/yaml" in request.',
        "The body is not JSON: Expecting ':' delimiter ",
        "Multipart form parse error - Invalid boundary in multipart: None",
        "name: Null characters are not allowed.",
        "file: The submitted data was not a file. Check the encoding type on the form.",
    ]


def test_too_many_requests_are_told_in_seconds(callers: Callers, settings: Any) -> None:
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"read": (1, 3600)}
    callers.owner.get(PATH)
    refused = callers.owner.get(PATH)
    assert refused.json()["detail"].startswith("Request was throttled. Expected available in ")
