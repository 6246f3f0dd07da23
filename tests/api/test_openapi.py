"""The schema that is checked in, and the page to try it."""

import io
from pathlib import Path

import jsonschema
import yaml
from django.core.management import call_command
from django.test import Client

from tests.api.callers import Callers

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"


def test_the_schema_is_valid_and_the_one_that_is_checked_in(tmp_path: Path) -> None:
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True, stdout=io.StringIO())
    assert file.read_text() == CHECKED_IN.read_text(), (
        "The API changed: run `make openapi` and commit docs/openapi.yaml."
    )


def test_every_request_has_an_example_and_every_example_is_one() -> None:
    whole = yaml.safe_load(CHECKED_IN.read_text())
    without = set()
    for operation in (operation for path in whole["paths"].values() for operation in path.values()):
        asked = operation.get("requestBody", {}).get("content", {})
        if "application/json" in asked and "examples" not in asked["application/json"]:
            without.add(operation["operationId"])
        contents = [asked, *(answer.get("content", {}) for answer in operation["responses"].values())]
        for content in (content for by_type in contents for content in by_type.values()):
            for example in content.get("examples", {}).values():
                jsonschema.validate(example["value"], content["schema"] | {"components": whole["components"]})
    assert len(without) == 1, f"{without}: give the serializer of each an example; only a manifest is too long for one."


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
