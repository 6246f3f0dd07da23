"""The matrix of a benchmark: lists of values, validated, and the configurations that they spell out."""

from __future__ import annotations

import difflib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchbench.errors import BenchbenchError
from benchbench.ir.ann import Ann, AnnError
from benchbench.ir.configuration import LATE_INTERACTION, Configuration

__all__ = ["Configuration", "Matrix", "MatrixError"]

SEARCH_MODES = ("dense", "sparse", "hybrid")
LEXICAL = ("bm25", "fts")
FUSIONS = ("rrf", "weighted")

MAX_TOP_K = 1000
MAX_DEPTH = 10_000
MAX_COMBINATIONS = 100_000  # tried in parsing a matrix, before equal configurations become one run


class MatrixError(BenchbenchError):
    """A matrix that cannot be run; `field` is the key at fault, or "matrix"."""

    code = "invalid_matrix"


class Kind(NamedTuple):
    """What a value may be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]

    def or_null(self) -> Kind:
        return Kind(f"{self.words}, or null", lambda value: value is None or self.holds(value))


def _whole(least: int, greatest: int) -> Kind:
    # By type, since isinstance would take True for 1.
    return Kind(f"a whole number from {least} to {greatest}", lambda v: type(v) is int and least <= v <= greatest)


def _one_of(choices: tuple[Any, ...]) -> Kind:
    words = f"one of {', '.join(map(_shown, choices))}" if len(choices) > 1 else _shown(choices[0])
    return Kind(words, lambda value: any(type(value) is type(choice) and value == choice for choice in choices))


def _shown(value: object) -> str:
    """A value as the author of a matrix writes it: in JSON."""
    return json.dumps(value, ensure_ascii=False, default=repr)


NAME = Kind("a name", lambda value: isinstance(value, str) and bool(value.strip()))
SHARE = Kind("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
DEPTH = _whole(1, MAX_DEPTH)
ANN = Kind("a setting such as hnsw(ef_search=100), or an object of it", lambda value: isinstance(value, (str, Mapping)))
WEIGHTS = Kind("two numbers, for dense and lexical, from 0 up and not both 0", lambda value: _are_weights(value))


def _are_weights(value: Any) -> bool:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return all(type(weight) in (int, float) and 0 <= weight < math.inf for weight in value) and any(value)


def _scaled(weights: Sequence[float] | None) -> tuple[float, float] | None:
    """Weights that sum to 1: it is only their ratio that matters."""
    if weights is None:
        return None
    dense, lexical = weights
    total = dense + lexical
    return (float(dense), float(lexical)) if math.isclose(total, 1) else (dense / total, lexical / total)


class Axis(NamedTuple):
    """A key of the matrix: the field of a configuration that its values set, its default, and what a value may be.

    `canonical` gives the one form of a value that passed `kind`, so that equal values are found equal.
    """

    field: str
    default: tuple[Any, ...]
    kind: Kind
    canonical: Callable[[Any], Any] = lambda value: value


K_VALUES = Axis("k", (5, 10, 20), _whole(1, MAX_TOP_K))
AXES = {  # in the order in which runs are numbered: the last varies fastest
    "indexes": Axis("index", (None,), NAME.or_null()),
    "search_modes": Axis("search_mode", ("dense",), _one_of(SEARCH_MODES)),
    "use_reranker": Axis("use_reranker", (False,), _one_of((True, False))),
    "rerankers": Axis("reranker", (None,), NAME.or_null()),
    "rerank_depths": Axis("rerank_depth", (None,), DEPTH.or_null()),
    "top_k_values": Axis("top_k", (100,), _whole(1, MAX_TOP_K)),
    "candidates": Axis("candidates", (None,), DEPTH.or_null()),
    "ann": Axis("ann", ("exact",), ANN, lambda value: str(Ann.parse(value))),
    "lexical": Axis("lexical", LEXICAL[:1], _one_of(LEXICAL)),
    "fusion": Axis("fusion", FUSIONS[:1], _one_of(FUSIONS)),
    "weights": Axis("weights", (None,), WEIGHTS.or_null(), _scaled),
    "rrf_k_values": Axis("rrf_k", (60,), DEPTH),
    "score_thresholds": Axis("score_threshold", (None,), SHARE.or_null()),
}
KEYS = ("primary_k", "k_values_for_metrics", *AXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The values of every axis, and the cutoffs at which its runs are measured. Made by `parse`, so always valid."""

    primary_k: int
    k_values_for_metrics: tuple[int, ...]
    axes: Mapping[str, tuple[Any, ...]]

    @classmethod
    def parse(cls, data: Mapping[str, Any], *, max_runs: int | None = None, max_values: int | None = None) -> Matrix:
        """The matrix that `data` describes: a list of distinct values per key of AXES, each with a default.

        `k_values_for_metrics` come out ascending, with `primary_k` (default 10) among them; a reranker that is used and
        not named is LATE_INTERACTION. Raises MatrixError, whose field is the key at fault, also for more than
        `max_values` in a list, and for more than `max_runs` runs, whose field is "matrix".
        """
        if not isinstance(data, Mapping):
            raise MatrixError(
                f"The matrix must be an object that gives lists of values, not {_shown(data)}.", field="matrix"
            )
        for key in data:
            _refuse_unknown(key)
        primary_k = data.get("primary_k", 10)
        if not K_VALUES.kind.holds(primary_k):
            raise MatrixError(f"primary_k: {_shown(primary_k)} is not {K_VALUES.kind.words}.", field="primary_k")
        k_values = _read("k_values_for_metrics", K_VALUES, data, max_values)
        axes = {key: _read(key, axis, data, max_values) for key, axis in AXES.items()}
        if True in axes["use_reranker"]:
            axes["rerankers"] = tuple(dict.fromkeys(name or LATE_INTERACTION for name in axes["rerankers"]))
        matrix = cls(primary_k=primary_k, k_values_for_metrics=tuple(sorted({*k_values, primary_k})), axes=axes)
        matrix._check_together(max_runs)
        return matrix

    def as_dict(self) -> dict[str, Any]:
        """Every key with its values, defaults included, as `parse` reads it."""
        axes = {key: list(values) for key, values in self.axes.items()}
        return {"primary_k": self.primary_k, "k_values_for_metrics": list(self.k_values_for_metrics), **axes}

    def configurations(self) -> list[Configuration]:
        """The distinct runs, in the order of AXES and of the values given, the last axis varying fastest.

        A value that does not touch a search is its default there, so that it does not multiply runs; of equal
        configurations the first stays.
        """
        names = [axis.field for axis in AXES.values()]
        combinations = itertools.product(*(self.axes[key] for key in AXES))
        spelled_out = (Configuration(**dict(zip(names, values, strict=True))) for values in combinations)
        return list(dict.fromkeys(configuration.normal() for configuration in spelled_out))

    def _check_together(self, max_runs: int | None) -> None:
        """Refuse values that are right alone and wrong together."""
        least, greatest = min(self.axes["top_k_values"]), self.k_values_for_metrics[-1]
        if least < greatest:
            always = " (primary_k is always one of them)" if greatest == self.primary_k else ""
            raise MatrixError(
                f"top_k_values: {least} is less than the greatest k to measure at, {greatest}{always}; raise it or "
                "drop the k.",
                field="top_k_values",
            )
        combinations = math.prod(len(values) for values in self.axes.values())
        if combinations > MAX_COMBINATIONS:
            raise MatrixError(
                f"The matrix combines its values in {combinations:,} ways; at most {MAX_COMBINATIONS:,} are tried. "
                "Shorten a list.",
                field="matrix",
            )
        configurations = self.configurations()
        if max_runs is not None and len(configurations) > max_runs:
            raise MatrixError(
                f"The matrix makes {len(configurations)} runs; at most {max_runs} are allowed. Shorten a list.",
                field="matrix",
            )
        for run in configurations:
            _check_rerank_depth(run)


def _check_rerank_depth(run: Configuration) -> None:
    if run.rerank_depth is not None and run.rerank_depth > run.effective_candidates:
        raise MatrixError(
            f"rerank_depths: {run.rerank_depth} is more than the {run.effective_candidates} candidates of a run with "
            f"{run.top_k} of top_k_values, their default; give candidates of at least {run.rerank_depth}.",
            field="rerank_depths",
        )


def _refuse_unknown(key: object) -> None:
    if key in KEYS:
        return
    near = difflib.get_close_matches(str(key), KEYS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"its keys are {', '.join(KEYS)}."
    raise MatrixError(f"The matrix has no key {_shown(key)}; {hint}", field=str(key))


def _read(key: str, axis: Axis, data: Mapping[str, Any], max_values: int | None) -> tuple[Any, ...]:
    """The values that `data` gives for a key, or its default."""
    values = data.get(key, axis.default)
    if not isinstance(values, (list, tuple)):
        raise MatrixError(f"{key}: give a list, not {_shown(values)}.", field=key)
    if not values:
        raise MatrixError(f"{key}: the list is empty; give a value, or leave the key out for the default.", field=key)
    if max_values is not None and len(values) > max_values:
        raise MatrixError(f"{key}: {len(values)} values are more than the {max_values} allowed.", field=key)
    read: list[Any] = []
    for value in values:
        if not axis.kind.holds(value):
            raise MatrixError(f"{key}: {_shown(value)} is not {axis.kind.words}.", field=key)
        try:
            canonical = axis.canonical(value)
        except AnnError as error:
            raise MatrixError(f"{key}: {error.message}", field=key) from None
        if canonical in read:
            raise MatrixError(f"{key}: {_shown(value)} is there more than once.", field=key)
        read.append(canonical)
    return tuple(read)
