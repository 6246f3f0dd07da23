"""Options of a benchmark: what a form, a request, a command, a manifest and a clone state of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from apps.benchmarks.models import Benchmark
from apps.retrieval.encoders.admitting import PUBLISHED
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import MatrixError

MAX_REPETITIONS = 100
MAX_SEED = 2**63 - 1  # as PostgreSQL stores it
CHOICES = {
    "execution": tuple(Benchmark.Execution.values),
    "unresolved": ("count", "drop"),
    "empty_queries": ("zero", "skip"),
}


class BenchmarkError(BenchbenchError):
    """A benchmark that cannot be made as asked."""

    code = "invalid_benchmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """A benchmark as it is asked for: its matrix (formats.md names the keys) and how it is run and measured.

    `measures` are had besides those of the matrix's cutoffs. The fields are those of the table.
    """

    name: str
    matrix: Mapping[str, Any]
    description: str = ""
    execution: str = "shared"
    runs_per_query: int = 1
    seed: int = 42
    unresolved: str = "count"
    empty_queries: str = "zero"
    measures: Sequence[str] = ()
    allow_missing: bool = False

    @classmethod
    def of(cls, benchmark: Benchmark) -> Self:
        return cls(**{field.name: getattr(benchmark, field.name) for field in fields(cls)})

    @classmethod
    def among(cls, values: Mapping[str, Any], **others: Any) -> Self:
        """Return the options that are among `values`, besides `others`; what is None or not there has its default."""
        known = {field.name: values.get(field.name) for field in fields(cls)} | others
        return cls(**{name: value for name, value in known.items() if value is not None})

    def check(self) -> None:
        """Raise BenchmarkError for the first value that cannot be, other than of the matrix and the measures."""
        if not self.name.strip() or not self.name.strip().isprintable():
            raise BenchmarkError("The benchmark needs a name of printable characters.", field="name")
        if not 1 <= self.runs_per_query <= MAX_REPETITIONS:
            told = f"runs_per_query is {self.runs_per_query}; it must be 1 to {MAX_REPETITIONS}."
            raise BenchmarkError(told, field="runs_per_query")
        if not 0 <= self.seed <= MAX_SEED:
            raise BenchmarkError(f"seed is {self.seed}; it must be 0 to {MAX_SEED}.", field="seed")
        check_policies(execution=self.execution, unresolved=self.unresolved, empty_queries=self.empty_queries)


def check_policies(**chosen: str) -> None:
    """Raise BenchmarkError for a policy or a way to execute that there is not."""
    for field, value in chosen.items():
        if value not in CHOICES[field]:
            raise BenchmarkError(f"{field} is {value!r}; it must be one of: {', '.join(CHOICES[field])}.", field=field)


def require_published(matrix: Any) -> None:
    """Raise MatrixError for a reranker that is no published name: no client names a folder of the server.

    What else may be wrong with a matrix is left to the use case.
    """
    rerankers = matrix.get("rerankers") if isinstance(matrix, Mapping) else None
    for name in rerankers if isinstance(rerankers, list) else ():
        if isinstance(name, str) and name.strip() and not PUBLISHED.fullmatch(name):
            raise MatrixError(
                f'rerankers: {name[:80]!r} is not the name of a model, as in "cross-encoder/ms-marco-MiniLM-L6-v2": '
                "folders of the server are named by commands only.",
                field="rerankers",
            )
