"""Frames of any content on the sockets of a real site: each is answered, or closes its socket in order.

What is not a message of the protocol (more than daphne's MiB, text that is not UTF-8) daphne drops with its connection,
silently; the site hears nothing of it.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.apps import apps
from hypothesis import example, given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from apps.operations.admission import _build_key
from tests.damages import EXAMPLES, drawn
from tests.operations.watched import ALL
from tests.services import kept_redis
from tests.sockets import cookie_of, make_watcher

PATIENCE = 120
DROPPED = 1006  # the code that a client gives a connection which ended without one
LONGEST, LONGEST_OF_DAPHNE = 4096, 2**20
PING = b'{"type": "ping"}'
DEPTHS = st.sampled_from([1, 20, 1020, 4000])
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["q1", "\0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
VALUES = st.one_of(ODD, ODD.map(lambda value: {"type": value}), ODD.map(lambda value: {"type": "ping", "of": value}))
TEXTS = st.one_of(
    st.just(PING),
    VALUES.map(lambda value: json.dumps(value).encode()),
    VALUES.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.text(max_size=50).map(str.encode),
    st.binary(max_size=50),
    st.builds(lambda depth, open: open * depth, DEPTHS, st.sampled_from([b"[", b'{"":'])),
    st.builds(lambda depth: b"[" * depth + b"]" * depth, DEPTHS),
    st.builds(lambda size: b" " * size + PING, st.sampled_from([0, 4080, 4081, 65_536, 100_000, LONGEST_OF_DAPHNE])),
)
# What a frame holds, whether it is one of text, and into how many pieces its message is cut.
FRAMES = st.lists(st.tuples(TEXTS, st.integers(0, 3).map(bool), st.integers(1, 3)), min_size=1, max_size=19)


def answer_to(content: bytes, is_text: bool) -> str | int:
    """Return the type or the code of what such a frame is answered with; the code of a close is a number."""
    if len(content) > LONGEST_OF_DAPHNE:
        return DROPPED
    try:
        text = content.decode() if is_text else ""
    except UnicodeDecodeError:
        return DROPPED
    if len(content) > LONGEST:
        return "message_too_long"
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return "unknown_message"
    return "pong" if isinstance(answer, dict) and answer.get("type") == "ping" else "unknown_message"


def conversation(address: str, cookie: str, frames: Sequence[tuple[bytes, bool, int]]) -> list[str | int]:
    """Send frames, and return what each is answered with, to the end of them or to the close, whose code is last."""
    heard: list[str | int] = []
    try:
        with connect(
            address, additional_headers={"Cookie": cookie}, proxy=None, open_timeout=PATIENCE, close_timeout=PATIENCE
        ) as watcher:
            assert json.loads(watcher.recv(timeout=PATIENCE))["type"] == "current_state"
            for content, is_text, pieces in frames:
                size = len(content) // pieces + 1
                watcher.send([content[at : at + size] for at in range(0, len(content) + 1, size)], text=is_text)
                answer = json.loads(watcher.recv(timeout=PATIENCE))
                heard.append(answer["data"]["code"] if answer["type"] == "error" else answer["type"])
                if heard[-1] == "message_too_long":
                    watcher.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        heard.append(closed.rcvd.code if closed.rcvd else DROPPED)
    return heard


@pytest.mark.fuzz
@pytest.mark.django_db(transaction=True)
def test_every_frame_is_answered_or_closes_the_socket(site):
    user = make_watcher("ada")
    address, cookie = site.replace("http", "ws") + ALL, cookie_of(user)
    models = [model for model in apps.get_models() if model._meta.managed]

    def counts() -> dict[Any, int]:
        return {model: model._default_manager.count() for model in models}

    @drawn(EXAMPLES // 10)
    @given(frames=FRAMES)
    @example(frames=[(b"[" * LONGEST, True, 1)])
    def check(frames: list[tuple[bytes, bool, int]]) -> None:
        expected: list[str | int] = []
        for content, is_text, _ in frames:
            expected.append(answer_to(content, is_text))
            if expected[-1] == "message_too_long":
                expected.append(1008)
            if isinstance(expected[-1], int):
                break
        assert conversation(address, cookie, frames) == expected

    before = counts()
    check()
    assert counts() == before
    assert conversation(address, cookie, [(PING, True, 1)]) == ["pong"], "places of closed sockets are free"
    assert kept_redis().zcard(_build_key(user.pk)) <= 1
