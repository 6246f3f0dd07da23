"""What every endpoint does alike: who asks, what one is informed, how often, and once."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AccessToken, SignIn
from apps.accounts.tokens import issue_token, revoke_token
from apps.api import idempotency
from apps.api.models import StoredAnswer
from apps.datasets.models import Dataset
from benchbench.errors import BenchbenchError
from tests.api.bodies import DATASETS, questions
from tests.api.callers import ROOT, Caller, Callers, assert_refused, bearer
from tests.factories import make_dataset
from tests.staff import MakeStaff

PASSWORD = "correct horse battery staple"


def sign_in(user: User, **declared: Any) -> Any:
    user.set_password(PASSWORD)
    user.save()
    return Caller().post("/auth/token", {"username": user.username, "password": PASSWORD} | declared)


def test_it_signs_in_goes_on_and_signs_out(callers: Callers) -> None:
    supplied = sign_in(callers.owner.user)
    assert "no-store" in supplied["Cache-Control"]
    pair = supplied.json()
    assert bearer(pair["access"]).get(ROOT + DATASETS).status_code == 200
    fresh = Caller().post("/auth/token/refresh", {"refresh": pair["refresh"]}).json()
    for access in (pair["access"], fresh["access"]):
        assert bearer(access).get(ROOT + DATASETS).status_code == 200
    assert bearer(fresh["refresh"]).get(ROOT + DATASETS).status_code == 401  # it is not for asking
    assert Caller().post("/auth/token/revoke", {"refresh": fresh["refresh"]}).status_code == 204
    for way in ("refresh", "revoke"):
        assert Caller().post(f"/auth/token/{way}", {"refresh": fresh["refresh"]}).status_code == 401
    assert bearer(fresh["access"]).get(ROOT + DATASETS).status_code == 401


def test_reused_refresh_token_ends_only_its_own_sign_in(callers: Callers) -> None:
    SignIn.objects.create(user=callers.other.user, jti="old", expires_at=timezone.now() - timedelta(days=1))
    stolen = sign_in(callers.owner.user).json()
    elsewhere = Caller().post("/auth/token", {"username": "owner", "password": PASSWORD}).json()
    fresh = Caller().post("/auth/token/refresh", {"refresh": stolen["refresh"]}).json()
    again = Caller().post("/auth/token/refresh", {"refresh": stolen["refresh"]})
    assert_refused(again, 401, "token_not_valid", "ended")
    assert Caller().post("/auth/token/refresh", {"refresh": fresh["refresh"]}).status_code == 401
    for pair, status in ((stolen, 401), (fresh, 401), (elsewhere, 200)):
        assert bearer(pair["access"]).get(ROOT + DATASETS).status_code == status
    assert SignIn.objects.count() == 1  # of the rows, what is past goes too


def test_read_only_jwt_and_its_refreshes_cannot_write(callers: Callers) -> None:
    pair = sign_in(callers.owner.user, scope="read").json()
    fresh = Caller().post("/auth/token/refresh", {"refresh": pair["refresh"]}).json()
    for token in (pair["access"], fresh["access"]):
        client = bearer(token)
        assert client.get(ROOT + DATASETS).status_code == 200
        assert_refused(client.post(ROOT + DATASETS, {"name": "n"}), 403, "insufficient_scope")


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!"}])
def test_user_changes_that_end_access_revoke_tokens(callers: Callers, change: dict[str, Any]) -> None:
    user = callers.owner.user
    pair = sign_in(user).json()
    User.objects.filter(pk=user.pk).update(**change)
    assert bearer(pair["access"]).get(ROOT + DATASETS).status_code == 401
    assert Caller().post("/auth/token/refresh", {"refresh": pair["refresh"]}).status_code == 401
    if "is_active" in change:
        assert callers.owner.get(DATASETS).status_code == 401


@pytest.mark.parametrize(
    ("header", "code", "sentence"),
    [
        ("Bearer bb_unknown", "authentication_failed", "The token is unknown, revoked or expired: make another in the"),
        ("Bearer abc", "token_not_valid", "Given token not valid for any token type"),
        ("Bearer a b", "authentication_failed", "Authorization header must contain two space-delimited values"),
        ("Bearer", "authentication_failed", ""),
        ("Basic YTpi", "not_authenticated", "Authentication credentials were not provided."),
    ],
)
def test_an_unknown_token_is_a_401(db: None, header: str, code: str, sentence: str) -> None:
    answer = Client(headers={"Authorization": header}).get(ROOT + DATASETS)
    assert (answer.status_code, answer.json()["code"]) == (401, code)
    assert answer.json()["detail"].startswith(sentence)
    assert answer["WWW-Authenticate"] == 'Bearer realm="api"'


def test_personal_token_works_until_revoked_or_expired(make_staff: MakeStaff) -> None:
    user = make_staff("ada")
    token, secret = issue_token(user, name="nightly", scope="write", expires_at=timezone.now() + timedelta(days=1))
    assert secret not in str(AccessToken.objects.values().get())
    client = bearer(secret)
    assert client.get(ROOT + DATASETS).status_code == 200
    token.refresh_from_db()
    assert token.last_used_at is not None
    AccessToken.objects.update(expires_at=timezone.now())
    assert client.get(ROOT + DATASETS).status_code == 401
    AccessToken.objects.update(expires_at=None)
    revoke_token(token)
    assert client.get(ROOT + DATASETS).status_code == 401
    issue_token(user, name="nightly")  # a name is free again
    with pytest.raises(BenchbenchError, match="You already have a token"):
        issue_token(user, name="nightly")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_address_is_a_404_in_json(db: None, method: str) -> None:
    for path in ("/nothing", DATASETS + "/", DATASETS + "/7", "/"):
        assert_refused(Caller().ask(method, path), 404, "not_found")


def test_unknown_api_paths_return_json_and_pages_stay_html(db: None) -> None:
    for path in ("/api", "/api/", "/api/v1/benchmarks", "/api/v2", "/api/docs/nothing"):
        for answer in (Client().get(path), Client().post(path)):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert Client().get("/api/docs")["Location"] == "/api/docs/"
    assert Client().get("/apiary")["Content-Type"].startswith("text/html")


def test_ids_are_read_case_insensitively_and_returned_lowercase(callers: Callers) -> None:
    dataset = make_dataset(name="found")
    answer = callers.owner.get(f"{DATASETS}/{str(dataset.pk).upper()}")
    assert (answer.status_code, answer.json()["id"]) == (200, str(dataset.pk))
    assert callers.owner.get(f"{DATASETS}/{dataset.pk.hex}").status_code == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE"])
def test_unsupported_method_returns_405_with_allowed_methods(callers: Callers, method: str) -> None:
    answer = callers.owner.ask(method, DATASETS, {})
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer["Allow"] == "GET, HEAD, POST"


def test_server_error_has_a_reference_found_in_the_log(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("apps.api.resources.datasets.add_query_count", broken)
    callers.owner.client.raise_request_exception = False
    with caplog.at_level(logging.ERROR):
        answer = callers.owner.get(DATASETS)
    assert (answer.status_code, set(answer.json())) == (500, {"detail", "code", "reference"})
    assert answer.json()["reference"] in caplog.text
    assert "a secret" not in answer.content.decode()


def test_a_key_makes_a_request_happen_once(callers: Callers) -> None:
    def send(*keys: str, idempotency_key: str = "k1", name: str = "n") -> Any:
        return callers.owner.upload(DATASETS, questions(*keys), name=name, idempotency_key=idempotency_key)

    first = send("a")
    assert (first.status_code, first.headers.get("Idempotent-Replayed")) == (201, None)
    Dataset.objects.update(name="renamed")
    again = send("a")
    assert (again.status_code, again.content, again["Idempotent-Replayed"]) == (201, first.content, "true")
    assert Dataset.objects.count() == 1
    for another in (send("a", "b"), send("a", name="m")):
        assert (another.status_code, another.json()["code"]) == (409, "idempotency_key_reused")
    assert send("a", idempotency_key="k2").status_code == 201
    theirs = callers.other.upload(DATASETS, questions("c"), name="n", idempotency_key="k1")
    assert theirs.status_code == 201  # a key is one user's own


def test_an_error_keeps_no_key(callers: Callers) -> None:
    assert callers.owner.upload(DATASETS, "{", name="n", idempotency_key="k").status_code == 400
    assert not StoredAnswer.objects.exists()
    assert callers.owner.upload(DATASETS, questions("a"), name="n", idempotency_key="k").status_code == 201


def test_a_key_is_free_again_after_its_time(callers: Callers) -> None:
    for number in range(idempotency.DELETED_PER_REQUEST):
        StoredAnswer.objects.create(user=callers.owner.user, path="/old", key=str(number), body_hash="")
    callers.owner.upload(DATASETS, questions("a"), name="n", idempotency_key="k")
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    second = callers.owner.upload(DATASETS, questions("b"), name="m", idempotency_key="k")
    assert (second.status_code, second.headers.get("Idempotent-Replayed")) == (201, None)


def test_invalid_idempotency_key_is_rejected(callers: Callers) -> None:
    answer = callers.owner.upload(DATASETS, questions("a"), name="n", idempotency_key="with space")
    assert_refused(answer, 400, field="Idempotency-Key")


@pytest.fixture
def rates(settings: Any, open_window: None) -> dict[str, tuple[int, int]]:
    settings.BENCHBENCH_API_RATES = dict(settings.BENCHBENCH_API_RATES)
    return settings.BENCHBENCH_API_RATES  # type: ignore[no-any-return]


def guess(name: str, password: str = "guess", *, address: int = 1) -> Any:
    fields = {"username": name, "password": password}
    return Caller().client.post(
        f"{ROOT}/auth/token", fields, content_type="application/json", REMOTE_ADDR=f"203.0.113.{address}"
    )


def test_throttled_requests_include_retry_after(callers: Callers, rates: Any) -> None:
    rates["read"] = (2, 3600)
    assert [callers.owner.get(DATASETS).status_code for _ in range(3)] == [200, 200, 429]
    refused = callers.owner.get(DATASETS)
    assert_refused(refused, 429, "throttled", "Request was throttled. Expected available in ")
    assert 0 < int(refused["Retry-After"]) <= 3600
    assert callers.other.get(DATASETS).status_code == 200  # each has their own
    assert callers.owner.upload(DATASETS, questions("a"), name="n").status_code == 201  # and each scope


def test_refused_requests_count_towards_the_limit(callers: Callers, rates: Any) -> None:
    rates["read"] = (1, 3600)
    assert [callers.idle.get(DATASETS).status_code for _ in range(2)] == [403, 429]
    assert [callers.anonymous.get(DATASETS).status_code for _ in range(2)] == [401, 429]


def test_an_address_tries_few_names(db: None, rates: Any) -> None:
    rates["auth"] = (2, 3600)
    assert [guess(name).status_code for name in ("ada", "bob", "max")] == [401, 401, 429]
    assert guess("max", address=2).status_code == 401


def test_a_name_is_tried_few_times_from_wherever(callers: Callers, rates: Any) -> None:
    user = callers.owner.user
    user.set_password(PASSWORD)
    user.save()
    rates["name"] = (2, 3600)
    for _ in range(3):
        assert guess("owner", PASSWORD).status_code == 200  # a right password does not count
    assert [guess(name, address=n).status_code for n, name in enumerate(["owner", "Owner", "owner"])] == [
        *(401, 401, 429)
    ]
    refused = guess("owner", PASSWORD, address=7)  # no more than anybody learns whether this one is right
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 0 < int(refused["Retry-After"]) <= 3600
    assert guess("other", address=7).status_code == 401


def test_address_limit_on_bad_tokens_spares_valid_tokens(callers: Callers, rates: Any) -> None:
    rates["failed"] = (2, 3600)
    bad = [bearer(token).get(ROOT + DATASETS) for token in ("bb_unknown", "abc", "bb_unknown")]
    assert [answer.status_code for answer in bad] == [401, 401, 429]
    assert "Retry-After" in bad[-1]
    assert callers.owner.get(DATASETS).status_code == 200
