"""Answers that break HTTP or have no end: refused with a sentence, within the limits of bytes and seconds."""

import gzip
import re
import time
import tracemalloc
from ipaddress import IPv4Address, IPv6Address

import pytest

from apps.engines.addresses import CREDENTIALS, POSITIONS, is_allowed
from apps.engines.errors import EngineError
from tests.engines.fetching import ask, refuse, resolve, send
from tests.engines.servers import reply, serve

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BLOCK = b"x" * 65536
LIMIT = 5_000_000  # bytes, as declarations have it by default
MOST_BYTES = 4 * LIMIT  # of memory, for one answer


def flood(beginning, block, pause=0.0):
    def act(connection, request):
        connection.sendall(beginning)
        while True:
            connection.sendall(block)
            time.sleep(pause)

    return act


ENDLESS = {
    "a negative chunk": (CHUNKED + b"-1\r\n", BLOCK),
    "a long chunk": (CHUNKED + b"fffffffffff\r\n", BLOCK),
    "small chunks": (CHUNKED, b"1\r\nx\r\n" * 1000),
    "a chunk's line": (CHUNKED + b"5;", BLOCK),
    "trailers": (CHUNKED + b"0\r\n", b"X-A: b\r\n" * 1000),
    "a status line": (b"HTTP/1.1 200 ", BLOCK),
    "a header": (OK + b"X-A: ", BLOCK),
    "headers": (OK, b"X-A: b\r\n" * 1000),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000),
    "a body without length": (OK + b"\r\n", BLOCK),
    "a long body": (OK + b"Content-Length: 999999999999\r\n\r\n", BLOCK),
    "an error": (b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", BLOCK),
    "no HTTP": (b"", BLOCK),
}


@pytest.mark.parametrize("answer", ENDLESS)
def test_endless_answer_takes_little_memory_and_time(answer):
    with serve(flood(*ENDLESS[answer])) as server:
        tracemalloc.start()
        try:
            refuse(server.port, total=3.0, max_bytes=LIMIT)  # without a limit it would never end
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("answer", ENDLESS)
def test_dripping_answer_ends_at_the_total_time(answer):
    beginning, block = ENDLESS[answer]
    with serve(flood(beginning, block[:1], 0.02)) as server, pytest.raises(EngineError):
        ask(server.port, total=0.5)


@pytest.mark.parametrize(
    "line", [b"-1", b"+5", b" 5", b"0x5", b"1_0", b"", b"5 5", "٥".encode(), b"5\r", b"-", b"5.0", b"five"]
)
def test_chunk_must_have_a_hexadecimal_length(line):
    with serve(send(CHUNKED + line + b"\r\n{}   \r\n0\r\n\r\n")) as server:
        assert re.search("what HTTP does not allow|breaks", refuse(server.port))


def test_hexadecimal_chunks_are_one_body():
    with serve(send(CHUNKED + b"A;n=1\r\n0123456789\r\n01\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n")) as server:
        assert ask(server.port).body == b"0123456789!"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: -5\r\n",
        b"Content-Length: 2\r\nContent-Length: 5\r\n",
        b"Content-Length: 2x\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"X A: b\r\n",
        b"X-A\r\n",
    ],
)
def test_head_that_http_does_not_allow_is_refused(head):
    with serve(send(OK + head + b"\r\n{}")) as server:
        assert "what HTTP does not allow" in refuse(server.port)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip", "GZIP"])
def test_compressed_answer_is_not_unpacked_whatever_its_name(encoding):
    bomb = gzip.compress(b"x" * 10_000_000)
    with serve(send(reply(bomb, headers=f"Content-Encoding: {encoding}\r\n"))) as server:
        assert "compressed body, which was refused" in refuse(server.port, max_bytes=LIMIT)


def test_interim_answers_precede_the_answer():
    with serve(send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + reply(b"{}"))) as server:
        assert ask(server.port).body == b"{}"


def test_connection_with_unasked_bytes_is_not_used_again():
    """The next request would take them for its answer."""
    answers = iter([b"first", b"second"])

    def act(connection, request):
        while True:
            body = next(answers)
            connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body + reply(b"wrong"))
            if not connection.recv(65536):
                return

    with serve(act) as server:
        assert [ask(server.port).body for _ in range(2)] == [b"first", b"second"]


def test_kept_connection_serves_the_next_request():
    def act(connection, request):
        while request:
            connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")
            request = connection.recv(65536)

    with serve(act) as server:
        assert [ask(server.port).body for _ in range(3)] == [b"{}"] * 3
        assert len(server.requests) == 1, "each connection notes its first request"


def embed(prefix, text, places):
    packed = bytearray(IPv6Address(prefix).packed)
    for position, byte in zip(places, IPv4Address(text).packed, strict=True):
        packed[position] = byte
    return str(IPv6Address(bytes(packed)))


def list_forms(text):
    """Every address of IPv6 that leads to an address of IPv4 somewhere."""
    yield from (f"::ffff:{text}", f"::{text}", f"::ffff:0:{text}", f"2001:db8::5efe:{text}", f"fe80::5efe:{text}")
    yield embed("2002::1", text, range(2, 6))
    yield embed("2001::", str(IPv4Address(int(IPv4Address(text)) ^ 0xFFFFFFFF)), range(12, 16))  # Teredo
    yield embed("2001::", text, range(4, 8))
    for places in POSITIONS:
        yield embed("64:ff9b:1::", text, places) if places[0] > 5 else embed("64:ff9b::", text, POSITIONS[-1])
        yield embed("2a01:4f8::", text, places)
        yield embed("fd12:3456::", text, places)


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("address", CREDENTIALS)
def test_credentials_of_clouds_are_refused_in_every_form(address, private):
    assert [form for form in (address, *list_forms(address)) if is_allowed(form, private=private)] == []


PRIVATE_ADDRESSES = """
169.254.1.1 224.0.0.1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:a9fe:a9fe::1 fd00:42::42 fe80::a9fe:a9fe fe80::1%1
ff02::1 ::ffff:169.254.7.7 64:ff9b::169.254.7.7 2002:a9fe:707::
"""


@pytest.mark.parametrize("address", PRIVATE_ADDRESSES.split())
def test_other_addresses_of_machines_are_refused_too(address):
    assert not is_allowed(address, private=True)


@pytest.mark.parametrize(
    "address", ["10.0.0.8", "127.0.0.1", "::1", "192.168.1.1", "fd12:3456::1", "64:ff9b::10.0.0.8"]
)
def test_private_address_is_allowed_where_declared(address):
    assert is_allowed(address, private=True)
    assert not is_allowed(address, private=False)


def test_public_address_is_allowed():
    assert is_allowed("93.184.216.34", private=False)
    assert is_allowed("2606:2800:220:1::1", private=False)
    assert is_allowed("::ffff:93.184.216.34", private=False)


HOSTS = """
169.254.169.254 2852039166 0xa9fea9fe 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 169.254.43518 100.100.100.200
168.63.129.16 [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::] [fd00:ec2::254]
\uff11\uff16\uff19.254.169.254 169\u3002254\u3002169\u3002254
"""


@pytest.mark.parametrize("host", HOSTS.split())
def test_no_spelling_of_a_host_reaches_credentials(host):
    assert re.search("not allowed|cannot be asked", refuse(80, host=host, total=5.0))


@pytest.mark.parametrize("address", ["169.254.169.254", "100.100.100.200"])
def test_name_that_resolves_to_credentials_is_refused(address, monkeypatch):
    resolve(monkeypatch, ["127.0.0.1", address])
    with serve(send(reply(b"{}"))) as server:
        assert "not allowed" in refuse(server.port, host="shop.example")
    assert not server.requests
