"""An OpenID Connect provider on a socket of this machine, which signs real tokens, and a site that trusts it."""

import json
import os
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from benchbench.settings import BASE_DIR
from tests.ports import find_free_port

CLIENT, SECRET = "benchbench", "of the test"
# Makes the tables and users of a site, and serves it.
SITE = """
import json, os, sys
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
User.objects.all().delete()
for row in json.loads(sys.argv[2]):
    User.objects.create_user(**row)
call_command("runserver", sys.argv[1], use_reloader=False)
"""


class Provider:
    """The provider: `claims` are those of the person who is signed in there, `userinfo` overrides them."""

    def __init__(self) -> None:
        self.key = self.published = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.audience: Any = CLIENT
        self.of_token: dict[str, Any] = {}  # of the ID token alone; None takes a claim out
        self.stated_issuer = ""
        self.asked: dict[str, str] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                if url.path == "/authorize":
                    provider.asked = query
                    self.send_response(302)
                    answer = urlencode({"code": "c0de", "state": query["state"]})
                    self.send_header("Location", f"{query['redirect_uri']}?{answer}")
                    self.end_headers()
                else:
                    self.reply(provider.answer(url.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.reply(provider.exchange({name: values[0] for name, values in parse_qs(body).items()}))

            def reply(self, answer: dict[str, Any]) -> None:
                self.send_response(200 if answer else 400)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/userinfo":
            return self.claims | self.userinfo
        if path == "/keys":
            key = json.loads(RSAAlgorithm.to_jwk(self.published.public_key()))
            return {"keys": [key | {"kid": "one", "alg": "RS256"}]}
        assert path == "/.well-known/openid-configuration"
        pages = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        return {
            "issuer": self.stated_issuer or self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            **{f"{name}_endpoint": f"{self.issuer}/{page}" for name, page in pages.items()},
        }

    def exchange(self, sent: dict[str, str]) -> dict[str, Any]:
        digest = sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        expected = (CLIENT, SECRET, "c0de", self.asked.get("code_challenge"))
        if (sent["client_id"], sent["client_secret"], sent["code"], challenge) != expected:
            return {}
        times = {"exp": time.time() + 60, "iat": time.time()}
        claims = times | {"iss": self.stated_issuer or self.issuer, "aud": self.audience} | self.claims | self.of_token
        claims = {name: value for name, value in claims.items() if value is not None}
        token = jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "one"})
        return {"access_token": "access", "token_type": "Bearer", "id_token": token}


@contextmanager
def serve_site(provider: Provider, users: list[dict[str, Any]], **more: str) -> Iterator[str]:
    """Serve a site on the database next to that of the tests; return its address."""
    address = f"127.0.0.1:{find_free_port()}"
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "BENCHBENCH_OIDC_ISSUER": provider.issuer,
        "BENCHBENCH_OIDC_CLIENT_ID": CLIENT,
        "BENCHBENCH_OIDC_CLIENT_SECRET": SECRET,
    }
    command = [sys.executable, "-c", SITE, address, json.dumps(users)]
    with subprocess.Popen(command, cwd=BASE_DIR, env=os.environ | environment | more) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, "the site ended"
                try:
                    httpx.get(f"http://{address}/healthz")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield f"http://{address}"
        finally:
            process.terminate()
