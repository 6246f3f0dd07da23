"""A limit on the header Content-Type, which Django parses in time quadratic in its length before it does anything else.

Anybody may send it. No type that a client states is longer than a fraction of the limit.
"""

from benchbench.site.requests_at_once import Application, Receive, Scope, Send, refuse

LONGEST = 500  # bytes
TOO_LONG = f"The header Content-Type has more than {LONGEST} bytes: shorten it."


class ShortHeaders:
    """An ASGI application that passes requests to `application`, and refuses those with a longer Content-Type."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if sum(len(value) for name, value in scope["headers"] if name == b"content-type") > LONGEST:
            await refuse(scope, send, 413, "too_large", TOO_LONG)
        else:
            await self.application(scope, receive, send)
