"""Headers of answers, and where they lead: what a browser is informed, and what no address makes it do."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AccessToken
from apps.accounts.tokens import issue_token
from benchbench.markup import html_is_slow
from benchbench.settings import BASE_DIR
from benchbench.site.downloads import attachment
from benchbench.site.presets import CONTENT_SECURITY_POLICY
from tests.admin.addresses import make_world
from tests.pages import NO_PAGES, every_address
from tests.proxy.nginx import COMPOSE

pytestmark = pytest.mark.thorough

EVIL = "evil.example"
ELSEWHERE = (f"https://{EVIL}/", f"//{EVIL}/", f"/\\{EVIL}", f"https:{EVIL}", f"\thttps://{EVIL}")


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    """A superuser, who has a token."""
    ada = User.objects.create_superuser("ada", password="ada")
    issue_token(ada, name="of ada")
    client.force_login(ada)
    return client


def policy_of(answer: Any) -> dict[str, list[str]]:
    pieces = (piece.split() for piece in answer["Content-Security-Policy"].split(";"))
    return {name: values for name, *values in pieces}


def test_policies_and_headers_that_every_answer_has(reader: Client) -> None:
    for path in ("/admin/", "/admin/login/", "/admin/nothing/", "/api/v2/schema", "/api/docs/", "/nothing"):
        policy = policy_of(reader.get(path))
        assert policy == {name: list(values) for name, values in CONTENT_SECURITY_POLICY["DIRECTIVES"].items()}, path
    policy = CONTENT_SECURITY_POLICY["DIRECTIVES"]
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == ["'none'"]
    assert policy["script-src"] == ["'self'"]
    assert not [value for values in policy.values() for value in values if "*" in value or "http" in value]
    for path in ("/admin/", "/api/v2/schema", "/nothing"):
        answer = reader.get(path)
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["Referrer-Policy"] == "same-origin"
        assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


def test_only_the_queues_have_scripts_in_the_page(reader: Client) -> None:
    assert "'unsafe-inline'" in policy_of(reader.get(reverse("django_rq:home")))["script-src"]
    inline = re.compile(r"<script(?![^>]*(?:\bsrc=|type=\"application/json\"))[^>]*>|\son\w+=\"", re.IGNORECASE)
    for path in ("/admin/", "/admin/login/", "/api/docs/", reverse("admin:retrieval_index_add")):
        assert inline.findall(reader.get(path).content.decode()) == [], path


def test_files_are_kept_and_not_shown(reader: Client, transactional_db: None) -> None:
    make_world(User.objects.get())
    files = {address for address in every_address() if NO_PAGES.get(address.name.rpartition(":")[2]) == "a file"}
    assert len(files) >= 5
    formats = {"run_export": "html", "benchmark_export": "html", "dataset_export": "beir", "mapping_export": "beir"}
    tried = 0
    for address in files:
        name = address.name.rpartition(":")[2]
        for row in address.model._default_manager.order_by("pk") if address.model else ():
            answer = reader.get(address.url({"object_id": row.pk, "format": formats.get(name, "")}.__getitem__))
            if answer.status_code == 200:
                tried += 1
                assert answer["Content-Disposition"].startswith("attachment"), name
                assert answer["X-Content-Type-Options"] == "nosniff", name
    assert tried >= 3
    hostile = attachment(lambda file: None, 'a".html\r\nX: y', "text/html")
    assert hostile["Content-Disposition"].startswith("attachment")
    assert "X" not in hostile


@pytest.mark.parametrize("target", ELSEWHERE)
def test_no_address_leads_elsewhere(reader: Client, target: str) -> None:
    local = re.compile(r"/(?![/\\])")
    visitor = Client()
    form = {"username": "ada", "password": "ada", "next": target}
    answers = [
        visitor.post("/admin/login/", form),
        visitor.post(f"/admin/login/?next={target}", form | {"next": ""}),
        reader.get("/admin/login/", {"next": target}),
        reader.post("/admin/logout/", {"next": target}),
        visitor.get(f"//{target}admin"),
        visitor.get(f"/admin/{target}"),
    ]
    again = Client()
    again.force_login(User.objects.get(username="ada"))
    token = AccessToken.objects.get()
    actions = {"action": "revoke_selected", "_selected_action": str(token.pk), "next": target}
    answers.append(again.post("/admin/accounts/accesstoken/", actions))
    assert token.state == "active"
    token.refresh_from_db()
    assert token.state == "revoked"
    for number, answer in enumerate(answers):
        location = answer.get("Location", "/")
        assert local.match(location), (number, location)


PRODUCTION = {
    "DATABASE_URL": "postgresql://benchbench:password@db.example.org/benchbench",
    "REDIS_URL": "redis://:password@redis.example.org/0",
    "SECRET_KEY": "9vG2mQ" * 12,
    "ALLOWED_HOSTS": "bench.example.org",
    "HTTPS": "true",
}
SHOW = """
import django
django.setup()
from django.conf import settings
from django.test import Client
for name in ("DEBUG", "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS", "SECURE_HSTS_INCLUDE_SUBDOMAINS",
             "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"):
    print(name, getattr(settings, name))
client = Client(headers={"Host": "bench.example.org"})
print(client.get("/admin/login/")["Location"])
print(client.get("/healthz", headers={"X-Forwarded-Proto": "https"})["Strict-Transport-Security"])
"""


def in_production(*command: str, **second: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH", "DJANGO"))}
    environment |= {"DJANGO_SETTINGS_MODULE": "benchbench.settings"} | PRODUCTION | second
    process = subprocess.run([sys.executable, *command], cwd=BASE_DIR, env=environment, capture_output=True, text=True)
    return process.stdout + process.stderr


def test_production_settings_are_secure_and_https_is_for_good() -> None:
    """Security alone: the services of the example do not answer."""
    output = in_production("manage.py", "check", "--deploy", "--tag", "security")
    assert "no issues" in output
    assert in_production("-c", SHOW).splitlines()[:8] == [  # a log follows
        "DEBUG False",
        "SECURE_SSL_REDIRECT True",
        "SECURE_HSTS_SECONDS 31536000",
        "SECURE_HSTS_INCLUDE_SUBDOMAINS True",
        "SESSION_COOKIE_SECURE True",
        "CSRF_COOKIE_SECURE True",
        "https://bench.example.org/admin/login/",
        "max-age=31536000; includeSubDomains",
    ]


def test_whole_check_of_a_production_site_is_clean(process_environment: dict[str, str]) -> None:
    services = {name: process_environment[name] for name in ("DATABASE_URL", "REDIS_URL")}
    output = in_production("manage.py", "check", "--deploy", "--fail-level", "DEBUG", **services)
    if html_is_slow():  # of this Python; another one has nothing to mend
        assert re.findall(r"\b\w+\.[EW]\d+\b", output) == ["benchbench.W006"]
    else:
        assert output == "System check identified no issues (1 silenced).\n"
    documented = (BASE_DIR / ".env.example").read_text().partition("# --- The site")[0]
    assert [name for name in PRODUCTION if f"\n# {name}=" not in documented] == []


def test_redis_without_a_password_triggers_a_warning() -> None:
    command = COMPOSE["redis"]["command"][-1]
    assert 'password="$$(cat /run/benchbench/redis_password)"' in command
    assert '--requirepass "$$password"' in command
    output = in_production(
        "manage.py", "check", "--deploy", "--tag", "security", REDIS_URL="redis://redis.example.org/0"
    )
    assert "(benchbench.W002) Redis at 'redis.example.org' requires no password." in output
    assert "REDIS_URL=redis://:PASSWORD@HOST/0" in output
