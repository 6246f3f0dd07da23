"""How often one may ask, and guess."""

from typing import Any

import pytest

from tests.api.callers import ROOT, Caller, Callers
from tests.api.test_base import PASSWORD, bearer
from tests.api.test_datasets import PATH, questions


@pytest.fixture
def rates(settings: Any) -> dict[str, tuple[int, int]]:
    settings.BENCHBENCH_API_RATES = dict(settings.BENCHBENCH_API_RATES)
    return settings.BENCHBENCH_API_RATES  # type: ignore[no-any-return]


def sign_in(name: str, password: str = "guess", *, address: int = 1) -> Any:
    stated = {"username": name, "password": password}
    return Caller().client.post(
        f"{ROOT}/auth/token", stated, content_type="application/json", REMOTE_ADDR=f"203.0.113.{address}"
    )


def test_too_many_requests_are_told_when_to_come_back(callers: Callers, rates: Any) -> None:
    rates["read"] = (2, 3600)
    assert [callers.owner.get(PATH).status_code for _ in range(3)] == [200, 200, 429]
    refused = callers.owner.get(PATH)
    assert refused.json()["code"] == "throttled"
    assert 0 < int(refused["Retry-After"]) <= 3600
    assert callers.other.get(PATH).status_code == 200  # each has their own
    assert callers.owner.upload(PATH, questions("a"), name="n").status_code == 201  # and each scope


def test_what_is_refused_counts_too(callers: Callers, rates: Any) -> None:
    rates["read"] = (1, 3600)
    assert [callers.idle.get(PATH).status_code for _ in range(2)] == [403, 429]
    assert [callers.anonymous.get(PATH).status_code for _ in range(2)] == [401, 429]


def test_an_address_tries_few_names(db: None, rates: Any) -> None:
    rates["auth"] = (2, 3600)
    assert [sign_in(name).status_code for name in ("ada", "bob", "max")] == [401, 401, 429]
    assert sign_in("max", address=2).status_code == 401


def test_a_name_is_tried_few_times_from_wherever(callers: Callers, rates: Any) -> None:
    user = callers.owner.user
    user.set_password(PASSWORD)
    user.save()
    rates["name"] = (2, 3600)
    for _ in range(3):
        assert sign_in("owner", PASSWORD).status_code == 200  # a right password does not count
    assert [sign_in(name, address=n).status_code for n, name in enumerate(["owner", "Owner", "owner"])] == [
        *(401, 401, 429)
    ]
    refused = sign_in("owner", PASSWORD, address=7)  # no more than anybody learns whether this one is right
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 0 < int(refused["Retry-After"]) <= 3600
    assert sign_in("other", address=7).status_code == 401


def test_an_address_sends_few_bad_tokens_and_good_ones_go_on(callers: Callers, rates: Any) -> None:
    rates["failed"] = (2, 3600)
    bad = [bearer(token).get(ROOT + PATH) for token in ("bb_unknown", "abc", "bb_unknown")]
    assert [answer.status_code for answer in bad] == [401, 401, 429]
    assert "Retry-After" in bad[-1]
    assert callers.owner.get(PATH).status_code == 200
