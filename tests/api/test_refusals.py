"""Refused requests: the sentences that say what is wrong, and values that no client of good will sends."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.exceptions import ValidationError

from apps.api import urls  # imports all serializers
from apps.api.fields import Int, StrictSerializer, validate
from apps.api.resources.benchmarks import MatrixField
from apps.api.resources.gates import RunField
from apps.collections.importing import create_collection
from tests.api.bodies import DATASETS, questions
from tests.api.callers import ROOT, Caller, Callers, assert_refused

assert urls
COLLECTIONS = "/collections"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"page": "0"}, "page: Ensure this value is greater than or equal to 1."),
        ({"page": "1000001"}, "page: Ensure this value is less than or equal to 1000000."),
        ({"per_page": "101"}, "per_page: Ensure this value is less than or equal to 100."),
        *(
            ({"page": page}, "page: A valid integer is required.")
            for page in ("x", "1.0", "9" * 30, "１", "", "1e3", " 1")
        ),
        ({"page": "-1"}, "page: Ensure this value is greater than or equal to 1."),
        ({"page": "\0"}, "page: "),
        ({"per_page": ["1", "2"]}, "per_page is given twice: give it once."),
        ({"pages": "1"}, "pages: Unknown key"),
        ({"status_filter": "lost"}, 'status_filter: "lost" is not a valid choice.'),
    ],
)
def test_refused_query_parameter_is_explained(callers: Callers, query: dict[str, Any], sentence: str) -> None:
    answer = callers.owner.get("/benchmarks", **query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
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
        (COLLECTIONS, {"title": "n"}, "title", "Unknown key: use name, description, language."),
        (COLLECTIONS, [], None, "Invalid data. Expected a dictionary, but got list."),
        ("/benchmarks/preview", {"mapping_id": "x"}, "mapping_id", "Must be a valid UUID."),
        ("/auth/token", {"username": "u", "password": "p", "scope": []}, "scope", '"[]" is not a valid choice.'),
        ("/auth/token", {"username": "u", "password": "p", "scope": "x"}, "scope", '"x" is not a valid choice.'),
        ("/auth/token", {"username": "ada", "password": {"a": 1}}, "password", "Not a valid string."),
    ],
)
def test_refused_body_is_explained(callers: Callers, path: str, body: Any, field: str, sentence: str) -> None:
    answer = callers.owner.post(path, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    outcome = answer.json()["errors"][field][0] if field else answer.json()["detail"]
    assert outcome.startswith(sentence)
    assert outcome in answer.json()["detail"]


def test_error_names_the_path_of_the_key(callers: Callers) -> None:
    answer = callers.owner.post(COLLECTIONS, {"name": "n"}).json()
    documents = [{"external_id": "a", "text": "t"}, {"external_id": "b", "sections": [{"heading": 1}]}, "c"]
    errors = callers.owner.post(f"{COLLECTIONS}/{answer['id']}/documents", {"documents": documents}).json()["errors"]
    assert errors["documents[1].sections[0].heading"] == ["Not a valid string."]
    assert errors["documents[2]"] == ["Invalid data. Expected a dictionary, but got str."]


def test_session_without_a_csrf_token_is_explained(callers: Callers) -> None:
    page = Client(enforce_csrf_checks=True)
    page.force_login(User.objects.get(pk=callers.owner.user.pk))
    answer = page.post(ROOT + COLLECTIONS, {"name": "n"}, content_type="application/json")
    assert_refused(answer, 403, "permission_denied", "CSRF Failed: CSRF cookie not set.")


def test_address_with_a_trailing_slash_suggests_the_correct_one(db: None) -> None:
    answers = [Caller().get(path).json()["detail"] for path in (f"{DATASETS}/", "/no/such/", "/nothing")]
    assert answers == [
        f"{ROOT}{DATASETS}/ does not exist: leave out the final slash ({ROOT}{DATASETS}).",
        f"{ROOT}/no/such/ does not exist: /api/docs/ lists all addresses.",
        f"{ROOT}/nothing does not exist: /api/docs/ lists all addresses.",
    ]


def test_unsupported_method_and_media_type_are_explained(callers: Callers) -> None:
    ask = callers.owner.ask
    assert ask("PUT", DATASETS, {}).json()["detail"] == 'Method "PUT" not allowed.'
    assert ask("POST", DATASETS, {}).json()["detail"] == ('Unsupported media type "application/json" in request.')
    send = callers.owner.client.post
    messages = [
        send(f"{ROOT}{COLLECTIONS}", "name: n", content_type="text/yaml"),
        send(f"{ROOT}/benchmarks/preview", '{"name"', content_type="application/json"),
        send(ROOT + DATASETS, "x", content_type="multipart/form-data"),
        callers.owner.upload(DATASETS, questions("a"), name="n\0"),
        callers.owner.client.post(ROOT + DATASETS, {"name": "n", "file": "{}"}),
    ]
    assert [answer.json()["detail"].partition("(")[0] for answer in messages] == [
        'Unsupported media type "text/yaml" in request.',
        "The body is not JSON: Expecting ':' delimiter ",
        "Multipart form parse error - Invalid boundary in multipart: None",
        "name: Null characters are not allowed.",
        "file[0]: The submitted data was not a file. Check the encoding type on the form.",
    ]


FORM = "multipart/form-data; boundary=x"
FORM_PART = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'


def test_any_bytes_as_a_token_are_refused_cleanly(db: None) -> None:
    for token in ("\xff\xfe", "bb_\xff", "bb_" + "x" * 10_000, "e30.e30.e30", "a.b.c", "..", "\0"):
        answer = Client().get(ROOT + DATASETS, HTTP_AUTHORIZATION=f"Bearer {token}")
        assert (answer.status_code, set(answer.json())) == (401, {"detail", "code"})


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b"", "", 400),
        (b"x", "", 415),
        (b"{}", "application/json", 415),
        (b"", "multipart/form-data", 400),
        (b"x", "multipart/form-data", 400),
        (b"x", FORM, 400),
        (b"--x\r\n\r\n\r\n--x--", FORM, 400),
        (FORM_PART % (b"name", b"n\0") + b"--x--", FORM, 400),
        (FORM_PART % (b"name", b"\xff") + b"--x--", FORM, 400),
        (FORM_PART % (b"\0", b"n") + b"--x--", FORM, 400),
        (b"".join(FORM_PART % (b"k%d" % number, b"") for number in range(1100)) + b"--x--", FORM, 400),
        (FORM_PART % (b"name", b"x" * 2_700_000) + b"--x--", FORM, 413),
    ],
)
def test_any_body_as_a_form_is_refused_cleanly(
    callers: Callers, content: bytes, content_type: str, status: int
) -> None:
    answer = callers.owner.client.generic("POST", ROOT + DATASETS, content, content_type=content_type)
    assert answer.status_code == status, answer.content
    assert {"detail", "code"} <= set(answer.json()) <= {"detail", "code", "errors"}


NAMES = ["", "..", "\0", "…"]


@pytest.mark.parametrize(
    ("path", "name"),
    [(DATASETS, name) for name in (*NAMES, "a/b", "x" * 300, "a.json.gz", "a.zip")]
    + [("/collections", name) for name in (*NAMES, "é" * 300 + ".zip", "a/b.jsonl", "a.jsonl.gz", ".jsonl", ".zip")],
)
def test_any_file_name_is_refused_cleanly(callers: Callers, path: str, name: str) -> None:
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    content = FORM_PART % (b"name", b"n") + head + b"{}\r\n--x--"
    answer = callers.owner.client.generic("POST", ROOT + path, content, content_type=FORM)
    assert answer.status_code == 400, answer.content


def test_invalid_external_ids_are_refused_cleanly(callers: Callers) -> None:
    collection = create_collection("library", owner=callers.owner.user)
    for external_id in ("\0", "", "x" * 501):
        assert callers.owner.get(f"/collections/{collection.pk}/documents", external_id=external_id).status_code == 400


class ManyFields(StrictSerializer):
    whole = Int(required=False)
    run = RunField(required=False)
    matrix = MatrixField(required=False)


@pytest.mark.parametrize(
    ("declared", "read"),
    [
        ({"whole": 5.0}, {"whole": 5}),
        ({"whole": -(2.0**53)}, {"whole": -(2**53)}),
        ({"run": 1.0}, {"run": 1}),
        (
            {"matrix": {"primary_k": 5.0, "candidates": [None, 40.0], "score_thresholds": [1.0]}},
            {"matrix": {"primary_k": 5, "candidates": [None, 40], "score_thresholds": [1.0]}},
        ),
    ],
)
def test_a_float_without_a_fraction_is_a_whole_number(declared: Any, read: Any) -> None:
    assert repr(dict(validate(ManyFields, declared))) == repr(read)


@pytest.mark.parametrize("value", [5.5, 2.0**53 + 2, "5", True, None, float("inf")])
@pytest.mark.parametrize("name", ["whole", "run"])
def test_other_values_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        validate(ManyFields, {name: value})
