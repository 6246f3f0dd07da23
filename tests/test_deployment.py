"""The files of the deployment, read as data: Docker is missing here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured

from benchbench.environment import SECRETS, read_secrets
from benchbench.settings import BASE_DIR
from benchbench.site.secrets import make_secrets

COMPOSE = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (BASE_DIR / "Dockerfile").read_text(encoding="utf-8")
EXAMPLE = (BASE_DIR / ".env.example").read_text(encoding="utf-8")
PINNED = re.compile(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*")
OURS = {"benchbench:cpu", "benchbench:cuda"}


def test_each_profile_has_its_services() -> None:
    claimed = {name: {key for key, one in SERVICES.items() if name in one["profiles"]} for name in profiles()}
    site = {"secrets", "db", "redis", "migrate", "proxy", "web"}
    assert claimed == {"all": site | {"worker"}, "site": site, "workers": {"worker"}, "gpu": {"gpu-worker"}}


def profiles() -> set[str]:
    return {name for service in SERVICES.values() for name in service["profiles"]}


@pytest.mark.parametrize("profile", sorted(profiles()))
def test_profile_needs_no_service_of_another(profile: str) -> None:
    for name, service in SERVICES.items():
        needs = service.get("depends_on", {}) if profile in service["profiles"] else {}
        for needed, condition in needs.items():
            is_there = profile in SERVICES[needed]["profiles"]
            assert is_there or condition.get("required") is False, (name, needed)


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"secrets", "migrate"}))
def test_service_has_a_healthcheck_and_a_pinned_image(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert service["restart"] == "unless-stopped"
    assert service["image"] in OURS or PINNED.fullmatch(service["image"]), service["image"]
    assert not service.get("privileged")
    assert service.get("user") != "root"


def test_image_is_pinned_and_runs_without_root() -> None:
    (base,) = re.findall(r"^ARG BASE=(\S+)\nFROM \$\{BASE\}$", DOCKERFILE, re.MULTILINE)
    assert PINNED.fullmatch(base)
    last = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)[-1]
    assert int(last) > 0
    assert f"useradd --uid {last} " in DOCKERFILE
    assert DOCKERFILE.count("pip install") == DOCKERFILE.count("-c constraints.txt") == 2
    assert {service["build"]["args"]["DEVICE"] for service in SERVICES.values() if "build" in service} == {
        "cpu",
        "cuda",
    }


def test_files_copied_before_the_packages_suffice(tmp_path: Path) -> None:
    """The metadata of the project name its packages; the code comes later, so that a change of it installs none."""
    copies = re.findall(r"^COPY (.+) (\S+)$", DOCKERFILE.partition("RUN")[0], re.MULTILINE)
    for files, folder in copies:
        (tmp_path / folder).mkdir(exist_ok=True)
        for file in files.split():
            shutil.copy(BASE_DIR / file, tmp_path / folder)
    process = subprocess.run([sys.executable, "-m", "hatchling", "metadata"], cwd=tmp_path, capture_output=True)
    assert process.returncode == 0, process.stderr.decode()


def test_pgvector_is_of_a_sound_version() -> None:
    version = SERVICES["db"]["image"].partition(":")[2].partition("-")[0]
    assert [int(piece) for piece in version.split(".")] >= [0, 8, 4]


def test_every_variable_is_a_documented_setting() -> None:
    text = (BASE_DIR / "docker-compose.yml").read_text(encoding="utf-8")
    labelled = set(re.findall(r"\$\{(\w+)", text)) - {"PORT"}
    assert {name for name in labelled if f"\n# {name}=" not in EXAMPLE} == set()
    settings = "".join(path.read_text() for path in Path(BASE_DIR, "benchbench").rglob("*.py"))
    supplied = {name for one in SERVICES.values() if one["image"] in OURS for name in one["environment"]}
    supplied -= {f"{name}_FILE" for name in SECRETS}
    assert {name for name in supplied if f'"{name}"' not in settings} == set()


def test_services_are_published_to_this_host_alone() -> None:
    published = [port for name in ("db", "redis") for port in SERVICES[name]["ports"]]
    assert all(port.startswith("${SERVICES_ADDRESS:-127.0.0.1}:") for port in published)
    assert not SERVICES["web"].get("ports")


def test_our_containers_cannot_change_their_image_or_user() -> None:
    ours = [service for service in SERVICES.values() if service["image"] in OURS]
    assert len(ours) == 5
    for service in ours:
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_secrets_are_made_once_and_read_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_secrets(tmp_path)
    first = {path.name: path.read_text() for path in tmp_path.iterdir()}
    make_secrets(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == first
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len({first[name] for name in ("secret_key", "postgres_password", "redis_password")}) == 3
    files = {f"{name}_FILE": SERVICES["web"]["environment"][f"{name}_FILE"].rpartition("/")[2] for name in SECRETS}
    environment = {name: str(tmp_path / file) for name, file in files.items()}
    monkeypatch.setattr(os, "environ", environment | {"REDIS_URL": "redis://stated"})
    read_secrets()
    assert os.environ["DATABASE_URL"] == f"postgresql://benchbench:{first['postgres_password']}@db/benchbench"
    assert (os.environ["SECRET_KEY"], os.environ["REDIS_URL"]) == (first["secret_key"], "redis://stated")
    del os.environ["REDIS_URL"]
    (tmp_path / "redis_url").unlink()
    with pytest.raises(ImproperlyConfigured, match=r"REDIS_URL_FILE: .* cannot be read: No such file"):
        read_secrets()
