"""Free ports for servers that a test starts and that cannot choose one themselves."""

import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

from benchbench.embedded import locks

PORTS = range(20_000, 32_000)  # below those from which Linux takes the near ends of connections
FOLDER = Path(tempfile.gettempdir()) / "benchbench-test-ports"


def find_free_port() -> int:
    """Return a port that nothing uses, and that other processes of tests leave alone until this one ends."""
    FOLDER.mkdir(exist_ok=True)
    for number in range(len(PORTS)):
        port = PORTS[(os.getpid() * 100 + number) % len(PORTS)]
        lock = locks.try_exclusive(FOLDER / str(port))
        if lock is None:
            continue
        with suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port  # its lock stays open
        os.close(lock)
    raise AssertionError(f"No port from {PORTS.start} to {PORTS.stop - 1} is free.")
