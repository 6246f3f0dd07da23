"""The header Content-Type, which Django reads before it knows who asks: one that is long is refused unread."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.utils.http import parse_header_parameters

from benchbench.site.requests_at_once import LONGEST
from tests.growth import measure_pace, measure_seconds

HOSTILE = ('x="' + ";" * 20_000, 'x="' + '";"' * 9_000, "a=b;" * 6_000, 'x="' + ';\\"' * 9_000, "x*=a;" * 5_000)


def ask(path: str, content_type: str) -> tuple[int, str]:
    """Ask the site's own application, and return the status and the text of its answer."""
    from benchbench.asgi import application

    async def requested() -> tuple[int, str]:
        headers = [(b"host", b"localhost"), (b"content-type", content_type.encode())]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        one = ApplicationCommunicator(application, scope)
        await one.send_input({"type": "http.request", "body": b"{}", "more_body": False})
        start: Any = await one.receive_output(10)
        body: Any = await one.receive_output(10)
        return start["status"], body["body"].decode()

    return asyncio.run(requested())


@pytest.mark.parametrize("path", ["/api/v2/nowhere", "/nowhere"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: text[:6])
def test_a_long_content_type_is_refused_unread(path: str, hostile: str) -> None:
    status, text = ask(path, f"multipart/form-data; {hostile}")
    assert status == 413
    assert "Content-Type has more than 500 bytes" in text
    if path.startswith("/api/"):
        assert json.loads(text)["code"] == "too_large"


@pytest.mark.django_db(transaction=True)
def test_a_usual_content_type_is_passed_on() -> None:
    longest = "multipart/form-data; boundary=" + "b" * 70  # more is forbidden
    assert ask("/api/v2/nowhere", longest)[0] == 404


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: text[:6])
def test_what_is_passed_on_is_read_at_once(hostile: str) -> None:
    assert measure_seconds(parse_header_parameters, f"a/b; {hostile}"[:LONGEST]) < 0.05 * measure_pace()
