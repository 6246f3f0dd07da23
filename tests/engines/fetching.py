"""Requests to a server that attacks."""

import socket

import pytest

from apps.engines.answers import Paths
from apps.engines.errors import EngineError
from apps.engines.guards import Request, fetch
from apps.engines.records import Engine, Timeouts
from benchbench.texts.secret import Secret

SECRET = "s3cr+t/Key==9"


def ask(port, *, host="127.0.0.1", scheme="http", private=True, secret=SECRET, ca_file="", **limits):
    limits = {"connect": 5.0, "total": 10.0, "max_bytes": 10_000} | limits
    url, max_bytes = f"{scheme}://{host}:{port}/search", limits.pop("max_bytes")
    options = {"private": private, "ca_file": ca_file, "timeouts": Timeouts(**limits), "max_bytes": max_bytes}
    engine = Engine(alias="shop", url=url, answer=Paths(id="id"), **options)
    return fetch(engine, Request("GET", url, {"X-Key": secret}), Secret(secret))


def refuse(port, **options):
    """The message of the error with which a request is refused."""
    with pytest.raises(EngineError) as refused:
        ask(port, **options)
    return refused.value.message


def send(data):
    return lambda connection, request: connection.sendall(data)


def resolve(monkeypatch, *answers):
    """Let every host name resolve to the next of some lists of addresses, then to the last one."""
    remaining = list(answers)
    real = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        if not host.endswith(".example"):
            return real(host, port, *args, **kwargs)
        addresses = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
