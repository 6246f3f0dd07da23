"""Memory of a GPU: batches that are halved when it is full, and vectors that stay in it between searches."""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from apps.retrieval import process
from benchbench.ir.records import Vectors

log = logging.getLogger(__name__)
Result = TypeVar("Result")

RESIDENT_SHARE = 0.25  # greatest share of the free memory that the vectors of one more index may take
COPIED_ROWS = 2**16


class Budget:
    """The size of a batch on a GPU, such as its tokens or bytes, halved for the rest of the process if memory is short.

    `user` names the model or the search in messages.
    """

    def __init__(self, user: str, size: int) -> None:
        self.user = user
        self.size = size

    def run(
        self, items: Sequence[int], work: Callable[[Sequence[int]], Result], count: int
    ) -> Iterator[tuple[Sequence[int], Result]]:
        """Yield parts of `items` of `count` each, in order, with what `work` returns for them.

        A part that needs too much memory is halved, and so are those after it. Raises MemoryError if a single item
        needs too much: a temporary error, since other programs may use the GPU.
        """
        start = 0
        while start < len(items):
            chosen = items[start : start + count]
            try:
                result = work(chosen)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                log.warning(
                    "%s: a batch did not fit in the GPU's memory. The next ones are smaller. %s", self.user, error
                )
            else:
                yield chosen, result
                start += count
                continue
            release_memory()  # only after the handler, whose traceback refers to tensors
            if len(chosen) == 1:
                raise MemoryError(
                    f"{self.user} needs more memory than the GPU has free: end other programs on it, start fewer "
                    "workers, or choose a smaller model or shorter chunks."
                )
            count, self.size = (len(chosen) + 1) // 2, max(1, self.size // 2)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether the memory of a GPU was too small: CUDA has an error class for that, MPS and cuBLAS only texts."""
    import torch

    texts = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in texts)


def release_memory() -> None:
    """Collect unreferenced models and tensors, drop resident vectors, and release the memory for other processes."""
    import torch

    _resident.clear()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


_resident: dict[tuple[int, str], object] = {}  # tensors by the identity of their array and by device
process.add(_resident.clear)


def place_vectors(vectors: Vectors, device: str) -> Any:
    """Return the copy of `vectors` that stays on the device, as a tensor; or `vectors` if none may.

    It is made on first use, if it fits in RESIDENT_SHARE of the free memory, and stays until the vectors are deleted or
    memory is short. Only read-only vectors are copied, such as those of a ready index: others might change later.
    """
    import torch

    key = (id(vectors), device)
    copy = _resident.get(key)
    if copy is None:
        if vectors.flags.writeable or vectors.nbytes > RESIDENT_SHARE * count_free_bytes(device):
            return vectors
        copy = torch.empty(vectors.shape, dtype=torch.float32, device=device)
        for start in range(0, len(vectors), COPIED_ROWS):
            copy[start : start + COPIED_ROWS] = torch.tensor(vectors[start : start + COPIED_ROWS])
        _resident[key] = copy
        weakref.finalize(vectors, _resident.pop, key, None).atexit = False  # before another array has this identity
    return copy


def count_free_bytes(device: str) -> int:
    """Return the free memory of a CUDA device; 0 for another, on which no vectors stay."""
    import torch

    return int(torch.cuda.mem_get_info(device)[0]) if device.startswith("cuda") else 0
