"""What no client of good will sends is a 4xx too, in the one shape."""

from typing import Any

import pytest
from django.test import Client

from apps.collections.importing import create_collection
from tests.api.callers import ROOT, Callers
from tests.api.test_datasets import PATH

FORM = "multipart/form-data; boundary=x"
PART = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'


@pytest.mark.parametrize("token", ["\xff\xfe", "bb_\xff", "bb_" + "x" * 10_000, "e30.e30.e30", "a.b.c", "..", "\0"])
def test_any_bytes_may_stand_for_a_token(db: None, token: str) -> None:
    answer = Client().get(ROOT + PATH, HTTP_AUTHORIZATION=f"Bearer {token}")
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
        (PART % (b"name", b"n\0") + b"--x--", FORM, 400),
        (PART % (b"name", b"\xff") + b"--x--", FORM, 400),
        (PART % (b"\0", b"n") + b"--x--", FORM, 400),
        (b"".join(PART % (b"k%d" % number, b"") for number in range(1100)) + b"--x--", FORM, 400),
        (PART % (b"name", b"x" * 2_700_000) + b"--x--", FORM, 413),
    ],
)
def test_any_body_may_stand_for_a_form(callers: Callers, content: bytes, content_type: str, status: int) -> None:
    answer = callers.owner.client.generic("POST", ROOT + PATH, content, content_type=content_type)
    assert answer.status_code == status, answer.content
    assert {"detail", "code"} <= set(answer.json()) <= {"detail", "code", "errors"}


@pytest.mark.parametrize("name", ["", "..", "a/b", "\0", "x" * 300, "…", "a.json.gz", "a.zip"])
def test_any_name_may_stand_for_a_file(callers: Callers, name: str) -> None:
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    content = PART % (b"name", b"n") + head + b"{}\r\n--x--"
    answer = callers.owner.client.generic("POST", ROOT + PATH, content, content_type=FORM)
    assert answer.status_code == 400, answer.content


@pytest.mark.parametrize("name", ["", "..", "\0", "é" * 300 + ".zip", "a/b.jsonl", "…", "a.jsonl.gz", ".jsonl", ".zip"])
def test_any_name_may_stand_for_a_corpus(callers: Callers, name: str) -> None:
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    content = PART % (b"name", b"n") + head + b"{}\r\n--x--"
    answer = callers.owner.client.generic("POST", f"{ROOT}/collections", content, content_type=FORM)
    assert answer.status_code == 400, answer.content


@pytest.mark.parametrize(
    "document",
    [
        None,
        {"external_id": "a", "text": "\ud800"},
        {"external_id": "a", "text": "\0"},
        {"external_id": "a", "text": "", "metadata": {"\0": 1}},
        {"external_id": "a", "text": "", "metadata": {"a": "\udfff"}},
        {"external_id": "a", "text": "", "metadata": None},
        {"external_id": "a", "text": "", "content_hash": "é" * 65},
        {"external_id": True, "text": ""},
        {"external_id": "a", "text": "", "sections": {"0": {}}},
        {"external_id": "a", "text": "", "sections": [{"section_id": "s", "start": -1, "end": 10**299}]},
        {"external_id": "a", "text": "", "sections": [{"section_id": "s", "start": 0, "end": 0, "level": 2**15}]},
    ],
)
def test_any_json_may_stand_for_a_document(callers: Callers, document: Any) -> None:
    made = create_collection("library", owner=callers.owner.user)
    answer = callers.owner.post(f"/collections/{made.pk}/documents", {"documents": [document]})
    assert answer.status_code == 400, answer.content


@pytest.mark.parametrize("external_id", ["\0", "", "x" * 501])
def test_any_text_may_stand_for_an_external_id(callers: Callers, external_id: str) -> None:
    made = create_collection("library", owner=callers.owner.user)
    assert callers.owner.get(f"/collections/{made.pk}/documents", external_id=external_id).status_code == 400


@pytest.mark.parametrize("page", ["\0", "１", "", "-1", "1e3", " 1"])
def test_any_text_may_stand_for_a_page(callers: Callers, page: str) -> None:
    answer = callers.owner.get(PATH, page=page)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"username": 1, "password": "p"},
        {"username": "ada", "password": "p", "scope": []},
        {"username": "ada", "password": "p", "scope": "admin"},
        {"username": "ada", "password": {"a": 1}},
        {"username": "ada"},
    ],
)
def test_any_json_may_stand_for_credentials(db: None, body: Any) -> None:
    answer = Client().post(f"{ROOT}/auth/token", body or "", content_type="application/json")
    assert (answer.status_code, answer.json()["code"] in ("invalid", "malformed")) == (400, True), answer.content
