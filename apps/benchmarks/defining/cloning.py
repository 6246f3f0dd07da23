"""Cloning a benchmark: the same matrix once more, over the data of today."""

from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from apps.benchmarks.defining.creating import create_benchmark
from apps.benchmarks.defining.options import BenchmarkOptions
from apps.benchmarks.launching import require_searched
from apps.benchmarks.models import Benchmark, Origin
from benchbench.errors import ConflictError
from benchbench.ir.planning.matrix import MatrixError
from benchbench.names import MAX_LENGTH


class CloneError(ConflictError):
    """The benchmark cannot be made once more."""

    code = "cannot_clone"


@transaction.atomic
def clone(
    benchmark: Benchmark, *, name: str = "", owner: User | None = None, allow_missing: bool | None = None
) -> Benchmark:
    """Create a pending benchmark with the mapping, matrix, measures and options of another.

    It asks the version that its mapping is resolved for by now, of the newest indexes of the names in the matrix, among
    those that `owner` sees; a manifest runs on the very same. It is of the other's experiment where both are still
    those, since that says what was run. Without a `name` it is called a copy; `allow_missing` too is as there unless it
    is stated. Raises CloneError where an index is gone or not to be seen, and what `create_benchmark` raises for the
    mapping.
    """
    require_searched(benchmark, "clone")
    options, ending = BenchmarkOptions.of(benchmark), ", copy"
    try:
        made = create_benchmark(
            benchmark.mapping,
            replace(
                options,
                name=name or benchmark.name[: MAX_LENGTH - len(ending)] + ending,
                allow_missing=benchmark.allow_missing if allow_missing is None else allow_missing,
            ),
            owner=owner,
        )
    except MatrixError as error:
        raise CloneError(f"The benchmark {benchmark.name!r} cannot be cloned as it is. {error.message}") from None
    if benchmark.experiment and _basis(made) == _basis(benchmark):
        Origin.objects.create(benchmark=made, experiment=benchmark.experiment)
    return made


def _basis(benchmark: Benchmark) -> list[Any]:
    """Return which version of the dataset is asked, of which indexes."""
    return [benchmark.dataset_version_id, *benchmark.runs.order_by("run_order").values_list("index", flat=True)]
