"""Calls from threads that begin together."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from django.db import connections


def at_once(number: int, ask: Callable[[int], Any]) -> list[Any]:
    """Call `ask` in threads that begin together."""
    ready = Barrier(number)

    def one(order: int) -> Any:
        try:
            ready.wait()
            return ask(order)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))
