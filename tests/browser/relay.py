"""A relay between a browser and the site, whose sockets hang as those of real networks do."""

import asyncio
import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.waiting import HANG_SECONDS

THROUGH, SILENT, NEVER = "through", "silent", "never"
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3


class Relay:
    """Passes HTTP on. `sockets` says what becomes of new sockets: they pass through, are accepted and then silent, or
    are never accepted. While `halts` is set, nothing passes on open connections, new ones included.
    """

    def __init__(self, site: str) -> None:
        self.host, self.port = urlsplit(site).hostname or "", urlsplit(site).port
        self.sockets = THROUGH
        self.asked = 0  # sockets that browsers asked for
        self.halts = False
        self.address = ""
        self.tasks: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"upgrade: websocket" in head.lower():
            self.asked += 1
            if self.sockets == SILENT:
                writer.write(agree(head))
            if self.sockets != THROUGH:
                await asyncio.sleep(3600)
        remote, on = await asyncio.open_connection(self.host, self.port)
        on.write(head)
        await asyncio.gather(self.copy(reader, on), self.copy(remote, writer))

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            while self.halts:
                await asyncio.sleep(0.05)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self.accept(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                writer.close()

        def start(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(hold(reader, writer))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

        server = await asyncio.start_server(start, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await end.wait()
        server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def agree(head: bytes) -> bytes:
    """Return the answer that opens a socket."""
    lines = (line.partition(b":") for line in head.split(b"\r\n"))
    key = next(value.strip() for name, _, value in lines if name.strip().lower() == b"sec-websocket-key")
    proof = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n"
    )


@contextmanager
def relaying(site: str) -> Iterator[Relay]:
    relay, ready = Relay(site), threading.Event()
    loop, end = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(relay.serve(ready, end)))
    thread.start()
    try:
        assert ready.wait(HANG_SECONDS)
        yield relay
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()
