"""The schema that is checked in, and the page to try it."""

import io
import re
from pathlib import Path

import jsonschema
import yaml
from django.core.management import call_command
from django.test import Client

from tests.api.callers import Callers

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"
SHOWN = ("application/json", "multipart/form-data")


def test_the_schema_is_valid_and_the_one_that_is_checked_in(tmp_path: Path) -> None:
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True, stdout=io.StringIO())
    assert file.read_text() == CHECKED_IN.read_text(), (
        "The API changed: run `make openapi` and commit docs/openapi.yaml."
    )


def test_everything_has_an_example_and_every_example_is_one() -> None:
    whole = yaml.load(CHECKED_IN.read_text(), yaml.CSafeLoader)
    shown = [("errors", answer) for answer in whole["components"]["responses"].values()]
    places = []
    for operation in (operation for path in whole["paths"].values() for operation in path.values()):
        name = operation["operationId"]
        shown += [(name, operation.get("requestBody", {}))]
        shown += [(name, answer) for status, answer in operation["responses"].items() if status < "300"]
        places += [(name, one) for one in operation.get("parameters", ()) if one.get("required") or "example" in one]
    for name, body in shown:
        places += [(name, one) for media_type, one in body.get("content", {}).items() if media_type in SHOWN]
    assert not [name for name, place in places if "example" not in place]
    for _, place in places:
        schema = place["schema"] | {"components": whole["components"]}
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        validator.validate(place["example"])


def test_it_is_served_to_staff(callers: Callers) -> None:
    answer = callers.reader.get("/schema")
    assert answer.status_code == 200
    assert answer.content.decode().startswith("openapi: 3.1.0")
    assert [caller.get("/schema").status_code for caller in (callers.anonymous, callers.visitor)] == [401, 403]


def test_the_page_to_try_it_needs_no_other_site(callers: Callers) -> None:
    client = Client()
    assert client.get("/api/docs/").status_code == 302
    client.force_login(callers.owner.user)
    page = client.get("/api/docs/").content.decode()
    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page
    assert 'href="/admin/"' in page, "a way back"


def test_the_page_to_try_it_acts_in_its_session(callers: Callers) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(callers.owner.user)
    script = re.search(r'src="(/api/docs/[^"]+)"', client.get("/api/docs/").content.decode())
    assert script is not None
    header = re.search(r'request\.headers\["X-CSRFTOKEN"\] = "(\w+)"', client.get(script[1]).content.decode())
    assert header is not None
    answers = [
        client.post("/api/v2/benchmarks", {}, content_type="application/json", headers=headers)
        for headers in ({}, {"X-CSRFToken": header[1]})
    ]
    assert [answer.status_code for answer in answers] == [403, 400], "let in, with a body that lacks everything"
