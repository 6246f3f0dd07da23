"""DISABLE_AUTH: for development, loudly, and nowhere else."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.admin.conftest import MakeStaff
from tests.api.callers import ROOT, Caller
from tests.api.test_datasets import PATH, questions
from tests.test_house import CHECKOUT

pytestmark = pytest.mark.thorough

START = "import django; django.setup()"


def start(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "benchbench.settings", "DISABLE_AUTH": "true"} | variables
    command = [sys.executable, "-c", START]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)


def test_it_is_refused_without_debug() -> None:
    done = start(DEBUG="false")
    assert done.returncode != 0
    assert "DISABLE_AUTH is true without DEBUG: it lets everybody in. Unset it." in done.stderr


def test_it_is_told_at_the_start(settings: Any) -> None:
    done = start(DEBUG="true", DISABLE_AUTH_USER="ada")
    assert done.returncode == 0, done.stderr
    assert "DISABLE_AUTH is on: the API lets everybody in as 'ada'." in done.stderr
    settings.DISABLE_AUTH = True
    assert "benchbench.W010" in {message.id for message in run_checks()}


def test_everybody_is_the_named_user(make_staff: MakeStaff, settings: Any) -> None:
    user = make_staff("ada")
    assert Caller().get(PATH).status_code == 401
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    assert Caller().upload(PATH, questions("a"), name="n").json()["owner_id"] == user.pk
    assert Caller(make_staff("grace")).upload(PATH, questions("a"), name="n").json()["owner_id"] != user.pk


@pytest.mark.parametrize("token", ["bb_of-yesterday", "eyJhbGciOiJIUzI1NiJ9.e30.x", "two words", ""])
def test_a_token_that_does_not_hold_is_as_good_as_none(make_staff: MakeStaff, settings: Any, token: str) -> None:
    user = make_staff("ada")
    asked = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    assert Client().get(ROOT + PATH, **asked).status_code == 401
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    assert Client().get(f"{ROOT}/operations", **asked).status_code == 200
    upload = {"name": "n", "file": SimpleUploadedFile("q.json", json.dumps(questions("a")).encode())}
    assert Client().post(ROOT + PATH, upload, **asked).json()["owner_id"] == user.pk
    user.is_active = False
    user.save()
    assert Client().get(ROOT + PATH, **asked).status_code == 401


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), ("http://testserver", 201), (None, 201)]
)
def test_a_page_of_another_site_is_not_everybody(
    make_staff: MakeStaff, settings: Any, origin: str | None, status: int
) -> None:
    make_staff("ada")
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    stated = {"name": "n", "file": SimpleUploadedFile("q.json", json.dumps(questions("a")).encode())}
    answer = Client().post(ROOT + PATH, stated, headers={"Origin": origin} if origin else {})
    assert answer.status_code == status, answer.content
    assert answer.json().get("code", "origin") == "origin"


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}, {"username": "other"}])
def test_the_named_user_must_be_active_staff(make_staff: MakeStaff, settings: Any, change: dict[str, Any]) -> None:
    user = make_staff("ada")
    for name, value in change.items():
        setattr(user, name, value)
    user.save()
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    answer = Caller().get(PATH)
    assert answer.status_code == 401
    assert "no active staff user is called 'ada'" in answer.json()["detail"]
