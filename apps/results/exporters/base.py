"""The base of exporters, and the facts that all of them write alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.text import slugify

from apps.benchmarks.models import Benchmark
from apps.datasets.models import DatasetVersion
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.local_files.placing import Files, Piece


class ExportError(BenchbenchError):
    """Results that cannot be written in a format."""

    code = "export"


class ExportStateError(ExportError, ConflictError):
    """The benchmark or the run is in a state in which it has no results."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """One format of results. `write` takes a benchmark or a run, as `exports` says, and the dataset version on which
    its values are to be, and yields the file in pieces.

    It may raise an ExportError at any piece, so what it yields is kept only once it has ended. `marks_failures`:
    whether the format can say that a query failed; one that cannot leaves such a query out.
    `file_name` where the format prescribes one. `files` where the format is a directory, which `write` yields as a zip:
    they are to be written in their order, each wholly before the next.
    """

    name: str
    title: str
    exports: Literal["benchmark", "run"]
    content_type: str
    extension: str
    write: Callable[[Any, DatasetVersion], Iterator[Piece]]
    marks_failures: bool = True
    file_name: Callable[[Any, DatasetVersion], str] | None = None
    files: Callable[[Any, DatasetVersion], Files] | None = None


def slug_of(benchmark: Benchmark) -> str:
    """Return the name of a benchmark as files are called after it."""
    return slugify(benchmark.name) or "benchmark"
