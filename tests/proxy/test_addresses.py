"""Whose requests are counted together: a client's own address, which nobody can state for himself."""

from typing import Any

import pytest
from django.test import Client

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("proxies", "same", "other"),
    [
        (0, ["203.0.113.1", "203.0.113.2", "203.0.113.3"], None),
        (1, ["203.0.113.1, 10.0.0.1", "203.0.113.2, 10.0.0.1", "10.0.0.1"], "10.0.0.1, 10.0.0.2"),
        (2, ["203.0.113.1, 10.0.0.1, 10.9.9.9", "10.0.0.1, 10.9.9.9", "10.0.0.1, 10.8.8.8"], "10.0.0.2, 10.9.9.9"),
    ],
)
def test_it_believes_its_proxies_alone(
    db: None, client: Client, settings: Any, proxies: int, same: list[str], other: str | None
) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"auth": (2, 86_400)}

    def sign_in(forwarded: str) -> int:
        body = {"username": f"nobody at {forwarded}", "password": "guessed"}
        headers = {"X-Forwarded-For": forwarded}
        return client.post("/api/v2/auth/token", body, "application/json", headers=headers).status_code

    assert [sign_in(forwarded) for forwarded in same] == [401, 401, 429]
    if other:
        assert sign_in(other) == 401
