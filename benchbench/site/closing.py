"""Closing a WebSocket with any code of the protocol, which daphne does not allow.

autobahn, on which daphne stands, lets applications send 1000 and 3000 to 4999 only: anything else raises, and the
client is told 1011. 1008 (policy violation) is what RFC 6455 has for a refusal, and other servers send it.
"""

from daphne.ws_protocol import WebSocketProtocol


def close(protocol: WebSocketProtocol, code: int | None = None) -> None:
    """Do what daphne's own method does, by the function that it uses itself to send 1011."""
    protocol.sendCloseFrame(code=1000 if code is None else code, isReply=False)


def allow_every_code() -> None:
    WebSocketProtocol.serverClose = close
