"""The matrix of a benchmark: validated lists of values, and the configurations that they define."""

from __future__ import annotations

import difflib
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import AnnError
from benchbench.ir.planning.axes import AXES, BY_KEY, normalize
from benchbench.ir.planning.axes.kinds import CUTOFF
from benchbench.ir.planning.configuration import LATE_INTERACTION, Configuration
from benchbench.ir.planning.engine import EngineSettingError
from benchbench.ir.planning.lexical import LexicalError
from benchbench.ir.planning.query_text import MULTI, QueryTextError
from benchbench.reading.kinds import Kind
from benchbench.reading.objects import format_value

__all__ = ["Configuration", "Matrix", "MatrixError"]

KEYS = ("primary_k", "k_values_for_metrics", *BY_KEY)
DEFAULT_CUTOFFS = (5, 10, 20)
DEFAULT_PRIMARY_K = 10
MAX_COMBINATIONS = 100_000  # of values that make a difference, before equal configurations become one run
COMBINATIONS_PER_RUN = 50  # the same, for each run that is allowed
LONGEST_VALUE = 2_000  # characters of a key or of a value, as JSON
DECIDING = ("search_mode", "use_reranker", "fusion", "query")  # fields that decide which others make a difference


class MatrixError(BenchbenchError):
    """A matrix is invalid; `field` is the invalid key, or "matrix"."""

    code = "invalid_matrix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The values of every axis, and the cutoffs at which its runs are measured. Made by `parse`, so always valid."""

    primary_k: int
    k_values_for_metrics: tuple[int, ...]
    axes: Mapping[str, tuple[Any, ...]]

    @classmethod
    def parse(cls, data: Mapping[str, Any], *, max_runs: int | None = None, max_values: int | None = None) -> Matrix:
        """Return the matrix that `data` describes: a list of distinct values per axis, each with a default.

        `k_values_for_metrics` come out ascending, with `primary_k` (default 10) among them; a reranker that is used and
        not named is LATE_INTERACTION. Raises MatrixError, whose field is the key at fault, also for more than
        `max_values` in a list, and for more than `max_runs` runs, whose field is "matrix".
        """
        if not isinstance(data, Mapping):
            raise MatrixError(
                f"The matrix must be an object with lists of values, not {format_value(data)}.", field="matrix"
            )
        for key in data:
            _refuse_unknown(key)
        primary_k = data.get("primary_k", DEFAULT_PRIMARY_K)
        if not CUTOFF.holds(primary_k):
            raise MatrixError(f"primary_k: {format_value(primary_k)} is not {CUTOFF.words}.", field="primary_k")
        k_values = _read("k_values_for_metrics", CUTOFF, data.get("k_values_for_metrics", DEFAULT_CUTOFFS), max_values)
        complete = {**default_modes(data), **data}
        axes = {
            key: _read(key, axis.kind, complete.get(key, (axis.default,)), max_values, axis.list_values)
            for key, axis in BY_KEY.items()
        }
        if True in axes["use_reranker"]:
            axes["rerankers"] = tuple(dict.fromkeys(name or LATE_INTERACTION for name in axes["rerankers"]))
        matrix = cls(primary_k=primary_k, k_values_for_metrics=tuple(sorted({*k_values, primary_k})), axes=axes)
        matrix._check_together(max_runs)
        return matrix

    def as_dict(self) -> dict[str, Any]:
        """Return every key with its values, defaults included, as `parse` reads it."""
        axes = {key: list(values) for key, values in self.axes.items()}
        return {"primary_k": self.primary_k, "k_values_for_metrics": list(self.k_values_for_metrics), **axes}

    def list_configurations(self) -> list[Configuration]:
        """Return the distinct runs, in the order of the axes and of the values given, the last axis varying fastest.

        A value that does not affect a search becomes its default there, so it does not multiply runs. Of equal
        configurations the first is kept.
        """
        return list(dict.fromkeys(self._yield_configurations()))

    def count_combinations(self) -> int:
        """Return how many combinations of values that make a difference there are, without making any.

        At least as many as runs: two depths may come to the same.
        """
        return sum(math.prod(map(len, block)) for block in self._list_blocks())

    def _yield_configurations(self) -> Iterator[Configuration]:
        """Yield the configurations of all combinations that make a difference, in normal form and in order."""
        axes = [(name, self.axes[axis.key]) for name, axis in AXES.items()]
        for numbers in heapq.merge(*(itertools.product(*block) for block in self._list_blocks())):
            values = {name: choices[number] for (name, choices), number in zip(axes, numbers, strict=True)}
            yield normalize(Configuration(**values))

    def _list_blocks(self) -> list[list[Sequence[int]]]:
        """Return blocks of combinations: the numbers in the lists of all axes that are combined with each other.

        A block has one value of each field that is DECIDING, and of others those that make a difference there, or
        else the first.
        """
        blocks: dict[Configuration, list[Sequence[int]]] = {}
        for numbers in itertools.product(*(range(len(self.axes[AXES[name].key])) for name in DECIDING)):
            decided = dict(zip(DECIDING, numbers, strict=True))
            run = Configuration(**{name: self.axes[AXES[name].key][number] for name, number in decided.items()})
            block: list[Sequence[int]] = [
                [decided[name]] if name in decided else range(len(self.axes[axis.key]) if axis.touches(run) else 1)
                for name, axis in AXES.items()
            ]
            blocks.setdefault(normalize(run), block)
        return list(blocks.values())

    def _check_together(self, max_runs: int | None) -> None:
        """Refuse values that are valid alone but not together."""
        smallest, greatest = min(self.axes["top_k_values"]), self.k_values_for_metrics[-1]
        if smallest < greatest:
            always = " (primary_k is always one of them)" if greatest == self.primary_k else ""
            raise MatrixError(
                f"top_k_values: {smallest} is less than the greatest k to measure at, "
                f"{greatest}{always}; raise it or leave out that k.",
                field="top_k_values",
            )
        configurations = self._list_allowed(max_runs)
        for run in configurations:
            _check_rerank_depth(run)
            _check_query(run)
        _check_engines(self.axes["engines"], configurations)

    def _list_allowed(self, max_runs: int | None) -> list[Configuration]:
        """Return the distinct runs; more than are allowed are refused by their number, and not made."""
        combinations = self.count_combinations()
        allowed = MAX_COMBINATIONS if max_runs is None else min(MAX_COMBINATIONS, COMBINATIONS_PER_RUN * max_runs)
        if combinations > allowed:
            raise MatrixError(
                f"The matrix has {combinations:,} combinations; at most {allowed:,} are allowed. Shorten a list.",
                field="matrix",
            )
        runs: dict[Configuration, None] = {}
        for run in self._yield_configurations():
            runs[run] = None
            if max_runs is not None and len(runs) > max_runs:
                raise MatrixError(
                    f"The matrix makes up to {combinations:,} runs; at most {max_runs} are allowed "
                    "(BENCHMARK_MAX_RUNS). Shorten a list.",
                    field="matrix",
                )
        return list(runs)


def _check_rerank_depth(run: Configuration) -> None:
    if run.rerank_depth is not None and run.rerank_depth > run.effective_candidates:
        raise MatrixError(
            f"rerank_depths: {run.rerank_depth} is more than the {run.effective_candidates} candidates "
            f"of a run with top k {run.top_k}, their default; set candidates to at least "
            f"{run.rerank_depth}.",
            field="rerank_depths",
        )


def _check_query(run: Configuration) -> None:
    if run.rewrites and not run.llm:
        raise MatrixError(
            f"llms: {run.query} needs a language model: name one with its server, such as ollama:llama3.2.",
            field="llms",
        )
    if run.rewrites and run.rate:
        raise MatrixError(
            f"rates: answers of language models are stored, so {run.query} would take no time under load: leave out "
            "one of the two, or use separate benchmarks.",
            field="rates",
        )
    if run.query.startswith(MULTI) and run.ann != "exact":
        raise MatrixError(
            f"query: the recall of {run.ann} is measured for one list, but {run.query} makes several: "
            "leave out one of the two, or use separate benchmarks.",
            field="query",
        )


def default_modes(data: Mapping[str, object], modes: Sequence[str] = ("dense",)) -> dict[str, list[str]]:
    """Return the search modes of a matrix that names engines and no modes: "engine", after `modes` for named indexes.

    Return {} for any other matrix.
    """
    if not data.get("engines") or "search_modes" in data:
        return {}
    return {"search_modes": [*(modes if data.get("indexes") else ()), "engine"]}


def _check_engines(engines: Sequence[str | None], configurations: Sequence[Configuration]) -> None:
    asking = [run for run in configurations if run.asks_engine]
    if any(run.engine is None for run in asking):
        raise MatrixError(
            f"engines: the search mode {asking[0].search_mode} needs a search engine: name one that the site declares.",
            field="engines",
        )
    if any(engines) and not asking:
        raise MatrixError('engines: no search mode asks an engine: add "engine" to search_modes.', field="engines")


def _refuse_unknown(key: object) -> None:
    if key in KEYS:
        return
    if len(str(key)) > LONGEST_VALUE:
        problem = f"The matrix has a key of {len(str(key)):,} characters; choose one of {', '.join(KEYS)}."
        raise MatrixError(problem, field="matrix")
    near = difflib.get_close_matches(str(key), KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(KEYS)}."
    raise MatrixError(f"The matrix has no key {format_value(key)}; {hint}", field=str(key))


def _read(
    key: str,
    kind: Kind,
    values: object,
    max_values: int | None,
    expand: Callable[[Any], Sequence[object]] = lambda value: [value],
) -> tuple[Any, ...]:
    """Return the values of a key in canonical form."""
    if not isinstance(values, (list, tuple)):
        raise MatrixError(f"{key}: must be a list, not {format_value(values)}.", field=key)
    if not values:
        raise MatrixError(f"{key}: the list is empty; give a value, or leave the key out for the default.", field=key)
    if max_values is not None and len(values) > max_values:
        allowed = f"the {max_values} allowed (BENCHMARK_MAX_VALUES_PER_AXIS)"
        raise MatrixError(f"{key}: {len(values)} values are more than {allowed}. Shorten the list.", field=key)
    read: dict[Any, None] = {}
    for value in values:
        if (length := len(format_value(value))) > LONGEST_VALUE:
            problem = f"a value has {length:,} characters, and at most {LONGEST_VALUE:,} are read"
            raise MatrixError(f"{key}: {problem}. Shorten it.", field=key)
        if not kind.holds(value):
            raise MatrixError(f"{key}: {format_value(value)} is not {kind.words}.", field=key)
        try:
            plain = expand(value)
        except (AnnError, EngineSettingError, LexicalError, QueryTextError) as error:
            raise MatrixError(f"{key}: {error.message}", field=key) from None
        if any(each in read for each in plain):
            raise MatrixError(f"{key}: {format_value(value)} occurs more than once.", field=key)
        read |= dict.fromkeys(plain)
    return tuple(read)
