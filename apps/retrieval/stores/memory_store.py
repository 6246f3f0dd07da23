"""Compressed vectors of fewer dimensions or lower precision, compared one by one, in a mapped file."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from apps.retrieval.stores.base import Mask, Nominate, StoreError, Vectors
from benchbench.ir.compression import Form
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions, Scores

CODES, STEPS = "codes.npy", "steps.npy"


class CompressedCollection:
    """The codes of vectors, mapped from a file whose pages processes share."""

    def __init__(self, folder: Path, setting: Ann) -> None:
        self._codes = np.load(folder / CODES, mmap_mode="r")
        steps = np.load(folder / STEPS)
        if steps.dtype != np.float64:
            raise StoreError(f"{folder} has steps of {steps.dtype}: its codes were rounded from float32, not float64.")
        self._form = Form(setting["precision"], setting["dimensions"], steps)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._codes), len(self._form.steps)

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        def nominate(query: Vectors, depth: int) -> Positions:
            return self._form.find_best(self._codes, self._form.prepare(query), depth, mask)

        return nominate

    def score(self, ids: Positions, query: Vectors) -> Scores:
        """Return the compressed scores (m,) of some positions."""
        return self._form.score(self._codes[ids], self._form.prepare(query))

    def read_back(self, setting: Ann) -> Mapping[str, object]:
        precision = "binary" if self._codes.dtype == np.uint64 else self._codes.dtype.name
        width = self._form.width if precision == "binary" else self._codes.shape[1]
        options = {"dimensions": width if setting["dimensions"] else 0, "precision": precision}
        return options | {"rescore": setting["rescore"]}

    def close(self) -> None:
        """Do nothing: the file is unmapped with the last reference to it."""


class MemoryStore:
    """The store in memory. `exact` reads the vectors themselves and has no collection."""

    name = "memory"
    packages = {"numpy": "numpy"}
    fixed = True

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        if setting.compares_all or setting["dimensions"] <= dimension:
            return ""
        return f"its dimensions, {setting['dimensions']:,}, exceed the {dimension:,} of the vectors"

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        form = Form.learn(vectors, setting["precision"], setting["dimensions"])
        np.save(folder / STEPS, form.steps)
        dtype, width = form.layout
        codes = np.lib.format.open_memmap(folder / CODES, mode="w+", dtype=dtype, shape=(len(vectors), width))
        start = 0
        for block in form.encode(vectors):
            codes[start : start + len(block)] = block
            start += len(block)
        codes.flush()

    def open(self, folder: Path, setting: Ann) -> CompressedCollection:
        return CompressedCollection(folder, setting)
