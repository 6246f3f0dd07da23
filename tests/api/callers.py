"""Clients of the API for tests."""

import json
from functools import cached_property
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.tokens import issue_token
from tests.staff import MakeStaff

ROOT = "/api/v2"


class Caller:
    """Asks as `user` with a personal token, or as no one. Paths begin after /api/v2; bodies are JSON."""

    def __init__(self, user: User | None = None, *, scope: str = "write") -> None:
        self.user = user
        headers = {}
        if user is not None:
            _, secret = issue_token(user, name=f"{scope} {user.access_tokens.count()}", scope=scope)
            headers["Authorization"] = f"Bearer {secret}"
        self.client = Client(headers=headers)

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(ROOT + path, query)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.ask("POST", path, body, **headers)

    def patch(self, path: str, body: Any) -> Any:
        return self.ask("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self.client.delete(ROOT + path)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a JSON body with any method; headers by keyword, `idempotency_key=` for Idempotency-Key."""
        content = b"" if body is None else json.dumps(body).encode()
        labelled = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, ROOT + path, content, content_type="application/json", headers=labelled)

    def upload(
        self,
        path: str,
        content: bytes | str | dict[str, Any],
        *,
        file_name: str = "questions.json",
        idempotency_key: str = "",
        **fields: Any,
    ) -> Any:
        """Post a form of `fields` and a file."""
        text = json.dumps(content) if isinstance(content, dict) else content
        file = SimpleUploadedFile(file_name, text.encode() if isinstance(text, str) else text)
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self.client.post(ROOT + path, fields | {"file": file}, headers=headers)


def checked_json(answer: Any, status: int) -> Any:
    """Return the JSON of an answer that must have this status."""
    assert answer.status_code == status, answer.content
    return answer.json()


def assert_refused(answer: Any, status: int, code: str = "", message: str = "", *, field: str | None = None) -> None:
    """Check the shape of a refusal, that its sentence holds `told`, and with `field` that it names this, or none."""
    assert answer.status_code == status, answer.content
    facts = answer.json()
    assert {"detail", "code"} <= set(facts) <= {"detail", "code", "errors", "reference"}
    assert code in ("", facts["code"]), facts
    assert facts["detail"][-1] in ".?"
    assert message in facts["detail"]
    assert ("Retry-After" in answer.headers, "WWW-Authenticate" in answer.headers) == (
        status in (429, 503),
        status == 401,
    )
    if field is not None:
        assert set(facts.get("errors", {})) == ({field} if field else set())


class Callers:
    """Everybody of the isolation matrix, made when they are first asked for. What `owner` has the others ask for."""

    NAMES = ("anonymous", "visitor", "idle", "other", "reader", "overseer", "owner")

    def __init__(self, make_staff: MakeStaff) -> None:
        self.make_staff = make_staff

    @cached_property
    def anonymous(self) -> Caller:
        return Caller()

    @cached_property
    def visitor(self) -> Caller:
        """Not staff."""
        return Caller(User.objects.create_user("visitor"))

    @cached_property
    def idle(self) -> Caller:
        """Staff without a permission."""
        return Caller(self.make_staff("idle", may=()))

    @cached_property
    def owner(self) -> Caller:
        return Caller(self.make_staff("owner"))

    @cached_property
    def other(self) -> Caller:
        """May do everything, but to what is theirs."""
        return Caller(self.make_staff("other"))

    @cached_property
    def reader(self) -> Caller:
        """The owner with a token that may only read."""
        return Caller(self.owner.user, scope="read")

    @cached_property
    def overseer(self) -> Caller:
        """May do everything, to what others own too."""
        user = self.make_staff("overseer")
        user.user_permissions.add(*Permission.objects.filter(codename__startswith="view_all"))
        return Caller(user)


MOST_QUERIES = 9  # of a personal token, as here: a JWT, or a session, takes one more


def bearer(token: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {token}"})


def content(answer: Any) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(read)()
