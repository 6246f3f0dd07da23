"""Servers that attack: each is refused with a sentence, and nothing leaks."""

import base64
import gzip
import logging
import socket
import ssl
import subprocess
import threading
import time

import pytest

from apps.engines.errors import EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.guards import Request
from benchbench.texts.secret import Secret
from tests.engines.fetching import SECRET, ask, refuse, resolve, send
from tests.engines.servers import reply, serve


class TestAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.8", "169.254.169.254", "[::ffff:127.0.0.1]"])
    def test_a_private_address_must_be_declared(self, host):
        assert "declare `private: true`" in refuse(9, host=host, private=False)

    def test_no_declaration_allows_the_credentials_of_clouds(self):
        assert "not allowed" in refuse(80, host="169.254.169.254")

    def test_one_private_address_of_several_is_refused(self, monkeypatch):
        resolve(monkeypatch, ["93.184.216.34", "127.0.0.1"])
        with serve(send(reply(b"{}"))) as server:
            assert "not allowed" in refuse(server.port, host="shop.example", private=False)
        assert not server.requests

    def test_a_changed_name_does_not_change_the_address(self, monkeypatch):
        """The checked address is connected to, no matter what the name resolves to a moment later."""
        resolve(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
        with serve(send(reply(b"{}"))) as server:
            assert ask(server.port, host="shop.example").body == b"{}"
        assert b"Host: shop.example:" in server.requests[0]
        resolve(monkeypatch, ["192.0.2.1"], ["127.0.0.1"])
        with serve(send(reply(b"{}"))) as server:
            assert "not allowed" in refuse(server.port, host="shop.example", private=False)
        assert not server.requests

    def test_a_name_without_an_address_is_a_sentence(self):
        assert refuse(80, host="shop.invalid", total=5.0).startswith("The engine shop was not found")

    def test_proxies_of_the_environment_are_not_used(self, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        with serve(send(reply(b"{}"))) as server:
            assert ask(server.port).body == b"{}"


class TestAnswers:
    def test_a_redirect_is_not_followed(self):
        with serve(send(reply(b'{"secret": 1}'))) as inner:
            location = f"Location: http://127.0.0.1:{inner.port}/\r\n"
            with serve(send(reply(b"", status="302 Found", headers=location))) as server:
                assert "redirect (302), which is refused" in refuse(server.port)
        assert not inner.requests

    def test_an_endless_body_ends_at_its_limit(self):
        def act(connection, request):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65536)

        for status in (b"200 OK", b"500 Oops", b"302 Found"):
            with serve(lambda c, r, status=status: act(_Renamed(c, status), r)) as server:
                message = refuse(server.port, total=60.0, max_bytes=10_000)
            assert "more than 10,000 bytes" in message if status == b"200 OK" else "answered" in message

    @pytest.mark.parametrize("status", ["200 OK", "500 Oops", "302 Found"])
    def test_a_compressed_body_is_not_unpacked(self, status):
        bomb = gzip.compress(b"x" * 10_000_000)
        with serve(send(reply(bomb, status=status, headers="Content-Encoding: gzip\r\n"))) as server:
            assert "compressed body, which was refused" in refuse(server.port)
        assert b"Accept-Encoding: identity" in server.requests[0]

    @pytest.mark.parametrize(
        "beginning", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 O\r\n\r\n"]
    )
    def test_a_drip_ends_at_the_total_time(self, beginning):
        def act(connection, request):
            connection.sendall(beginning)
            while True:
                time.sleep(0.05)
                connection.sendall(b"x")

        with serve(act) as server, pytest.raises(EngineTimeoutError, match=r"completely within 0.5 seconds"):
            ask(server.port, total=0.5)

    def test_a_broken_connection_is_temporary(self):
        with serve(lambda connection, request: None) as server, pytest.raises(TemporaryEngineError, match="breaks"):
            ask(server.port)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            with pytest.raises(TemporaryEngineError, match="refuses"):
                ask(closed.getsockname()[1])

    def test_a_short_body_is_an_error(self):
        with serve(send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}")) as server:
            assert "breaks connections" in refuse(server.port)

    @pytest.mark.parametrize(
        ("status", "advice"),
        [
            ("401 No", "correct its secret or headers"),
            ("404 No", "correct its url or method"),
            ("500 Oops", "read its log"),
            ("422 No", "correct its declaration"),
        ],
    )
    def test_a_status_has_its_remedy(self, status, advice):
        with serve(send(reply(b"", status=status))) as server:
            assert refuse(server.port).endswith(f"answered {status[:3]}: {advice}.")

    @pytest.mark.parametrize(
        ("status", "wait"), [("429 Slow", 7.0), ("503 Away", 7.0), ("504 Late", 7.0), ("502 Bad", 7.0)]
    )
    def test_temporary_statuses_keep_their_waiting_time(self, status, wait):
        answer = reply(b"later", status=status, headers="Retry-After: 7\r\n")
        message = rf"answered {status[:3]}: (wait, or ask it more slowly|read its log)\. It says: later$"
        with serve(send(answer)) as server, pytest.raises(TemporaryEngineError, match=message) as refused:
            ask(server.port)
        assert refused.value.retry_after == wait


class _Renamed:
    """A connection whose status line has another status."""

    def __init__(self, connection, status):
        self._connection, self._status = connection, status

    def sendall(self, data):
        self._connection.sendall(data.replace(b"200 OK", self._status))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The files of a self-signed certificate for shop.example and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=shop.example"]
    command += ["-addext", "subjectAltName=DNS:shop.example", "-keyout", folder / "key", "-out", folder / "cert"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert", folder / "key"


class TestTLS:
    @pytest.fixture
    def server(self, certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        with serve(send(reply(b"{}")), context) as server:
            yield server

    def test_a_self_signed_certificate_is_refused(self, server, monkeypatch):
        resolve(monkeypatch, ["127.0.0.1"])
        message = refuse(server.port, host="shop.example", scheme="https")
        assert message == "The engine shop has no valid TLS certificate (self-signed certificate): correct it there."
        assert not server.requests

    def test_a_certificate_of_another_name_is_refused(self, server, monkeypatch, certificate):
        resolve(monkeypatch, ["127.0.0.1"])
        options = {"scheme": "https", "ca_file": str(certificate[0])}
        assert ask(server.port, host="shop.example", **options).body == b"{}"
        assert "no valid TLS certificate" in refuse(server.port, host="other.example", **options)
        assert "no valid TLS certificate" in refuse(server.port, host="127.0.0.1", **options)

    def test_a_slow_handshake_ends(self):
        ended = threading.Event()
        with serve(lambda connection, request: ended.wait(60)) as server:
            assert "within" in refuse(server.port, scheme="https", total=0.5)
            ended.set()


class TestSecrets:
    FORMS = (SECRET, "s3cr%2Bt%2FKey%3D%3D9", "czNjcit0L0tleT09OQ==", "s3cr+t\\/Key==9")

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("status", ["401 No", "500 Oops", "429 Slow"])
    def test_an_error_that_repeats_a_secret_is_hidden(self, form, status, caplog):
        caplog.set_level(logging.DEBUG)
        body = f"wrong key {form} {'x' * 20_000}".encode()
        with serve(send(reply(body, status=status))) as server, pytest.raises(EngineError) as refused:
            ask(server.port)
        assert SECRET.encode() in server.requests[0]
        leaks = f"{refused.value!r} {refused.value.message} {vars(refused.value)} {caplog.text}"
        assert form not in leaks
        assert "a message that repeats the secret" in refused.value.message

    @pytest.mark.parametrize("form", FORMS)
    def test_an_answer_that_repeats_a_secret_is_refused(self, form):
        with serve(send(reply(f'{{"id": "{form}"}}'.encode()))) as server:
            message = refuse(server.port)
        assert form not in message
        assert "repeats its secret" in message

    def test_a_short_password_may_occur_in_answers(self):
        """The password of a Basic header is searched for in answers, but not "admin", which any answer may contain."""
        secret = base64.b64encode(b"admin:admin").decode()
        for body, is_refused in ((b'{"title": "admin"}', False), (b'{"user": "admin:admin"}', True)):
            with serve(send(reply(body))) as server:
                if is_refused:
                    assert "repeats its secret" in refuse(server.port, secret=secret)
                else:
                    assert ask(server.port, secret=secret).body == body

    def test_a_secret_that_no_header_can_have_is_hidden(self):
        message = refuse(9, secret="s3cret-value\nX-Other: 1")
        assert message == "The engine shop cannot be asked (InvalidHeader): correct its address or headers."

    def test_no_repr_shows_a_secret(self):
        request = Request("GET", "http://127.0.0.1/", {"X-Key": SECRET})
        assert SECRET not in f"{request!r} {Secret(SECRET)!r} {Secret(SECRET)}"
