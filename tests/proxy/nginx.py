"""nginx as Docker Compose starts it, before a site of the test."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checkout import CHECKOUT
from tests.ports import find_free_port
from tests.waiting import until

TEMPLATE = (CHECKOUT / "proxy" / "site.conf.template").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
SECONDS = 120
NGINX_CONF = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def environment(**more: str) -> dict[str, str]:
    """Return what the proxy's container knows where .env says nothing but `more`, the sizes of bodies among it."""
    declared = COMPOSE["proxy"]["environment"]
    recognised = {
        name: more.get(name) or re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", value) for name, value in declared.items()
    }
    sizes = subprocess.run(
        ["sh", "-ec", ". proxy/body-sizes.envsh; env"], cwd=CHECKOUT, env=recognised, capture_output=True, text=True
    )
    assert sizes.returncode == 0, sizes.stderr
    return dict(line.split("=", 1) for line in sizes.stdout.splitlines()) | more


def filled_in(**more: str) -> str:
    """Return the configuration as the image's entry point makes it of the template."""
    recognised = environment(**{"NGINX_LOCAL_RESOLVERS": "127.0.0.1", **more})
    return re.sub(r"\$\{(\w+)\}", lambda result: recognised[result[1]], TEMPLATE)


@pytest.fixture
def proxy(tmp_path: Path, processes: list["subprocess.Popen[bytes]"]) -> Callable[..., str]:
    """Start nginx before the site at an address, or at several, with settings by name; return its own address.

    `body_seconds` is how long it waits for the next piece of a body.
    """
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sentence = "There is no nginx here: install one (Debian: apt-get install nginx-light)."
        if os.environ.get("BENCHBENCH_REQUIRE_NGINX") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)

    def start(*sites: str, body_seconds: int = SECONDS, **more: str) -> str:
        port = find_free_port()
        servers = "".join(f"server {site.removeprefix('http://')};" for site in sites)
        configuration = f"upstream sites {{ {servers} }}\n" + filled_in(SITE="sites", **more)
        for ours, tests in (
            ("listen 8000;", f"listen 127.0.0.1:{port};"),
            ("client_body_timeout 20s;", f"client_body_timeout {body_seconds}s;"),
        ):
            assert ours in configuration
            configuration = configuration.replace(ours, tests)
        (tmp_path / "site.conf").write_text(configuration)
        user = "user root;" if os.geteuid() == 0 else ""  # else nginx's own user, who may not enter the folder
        (tmp_path / "nginx.conf").write_text(NGINX_CONF.format(folder=tmp_path, user=user))
        command = [program, "-e", str(tmp_path / "error.log"), "-c", str(tmp_path / "nginx.conf")]
        nginx = subprocess.Popen(command)
        processes.append(nginx)
        wait_for(port, nginx, tmp_path / "error.log")
        return f"http://127.0.0.1:{port}"

    return start


def wait_for(port: int, nginx: Any, log: Path) -> None:
    def answers() -> bool:
        assert nginx.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    until(answers, "an answer of nginx")
