"""How often one may guess a password on the page of the admin."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

PASSWORD = "correct horse battery staple"


@pytest.fixture
def rates(db: None, settings: Any) -> dict[str, tuple[int, int]]:
    User.objects.create_user("ada", password=PASSWORD, is_staff=True)
    settings.BENCHBENCH_API_RATES = dict(settings.BENCHBENCH_API_RATES)
    return settings.BENCHBENCH_API_RATES  # type: ignore[no-any-return]


def sign_in(name: str, password: str = "guess", *, address: int = 1) -> str:
    """Return "in", or why not."""
    stated = {"username": name, "password": password}
    page = Client().post(reverse("admin:login"), stated, REMOTE_ADDR=f"203.0.113.{address}")
    if page.status_code == 302:
        return "in"
    return str(page.context["form"].non_field_errors()[0]).partition(" ")[0]


def test_a_name_is_tried_few_times_and_nobody_is_locked_out_from_elsewhere(rates: Any) -> None:
    rates["name"] = (2, 3600)
    assert [sign_in("ada", PASSWORD) for _ in range(3)] == ["in"] * 3  # a right password does not count
    assert [sign_in(name) for name in ("ada", "Ada", "ada")] == ["Please", "Please", "Too"]
    assert sign_in("ada", PASSWORD) == "Too"  # no more than anybody learns whether this one is right
    assert sign_in("ada", PASSWORD, address=2) == "in"


def test_an_address_tries_few_names(rates: Any) -> None:
    rates["auth"] = (2, 3600)
    assert [sign_in("ada", PASSWORD) for _ in range(3)] == ["in"] * 3
    assert [sign_in(name) for name in ("bob", "max", "eve")] == ["Please", "Please", "Too"]
    assert sign_in("bob", address=2) == "Please"


def test_without_redis_nobody_signs_in_and_is_told_why(rates: Any, settings: Any) -> None:
    settings.CACHES = {"default": settings.CACHES["default"] | {"LOCATION": "redis://127.0.0.1:9"}}
    page = Client().post(reverse("admin:login"), {"username": "ada", "password": PASSWORD})
    assert "Signing in needs Redis, which does not answer" in str(page.context["form"].non_field_errors())
