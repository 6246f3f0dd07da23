"""The number of threads of torch."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[int]:
    """Let torch compute on one thread meanwhile; give how many it had.

    Small products gain nothing by a second thread, wait long for it on a busy machine, and differ by it in last bits.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
