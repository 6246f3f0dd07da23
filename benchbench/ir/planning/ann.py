"""The ANN setting of a dense search: exact, or by which approximate index, built how and read how."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchbench.errors import BenchbenchError
from benchbench.ir.records import ScoredList
from benchbench.reading.kinds import Kind, one_of, whole
from benchbench.reading.objects import shown

Value = int | str

TEXT = re.compile(r"\s*(?P<method>[a-z]+)\s*(?:\((?P<options>[^()]*)\)\s*)?")


class AnnError(BenchbenchError):
    """An ANN setting that there is not."""

    code = "invalid_ann"


class Option(NamedTuple):
    """What may be said about a method. `builds`: it shapes the index itself; else only how that is searched."""

    default: Value
    kind: Kind
    builds: bool = False


# Defaults and bounds are pgvector's own, so that a bare "hnsw" is what pgvector does when it is told nothing.
STORAGE = Option("vector", one_of("vector", "halfvec", "binary"), builds=True)
METHODS: dict[str, dict[str, Option]] = {
    "exact": {},
    "hnsw": {
        "m": Option(16, whole(2, 100), builds=True),
        "ef_construction": Option(64, whole(4, 1000), builds=True),
        "ef_search": Option(40, whole(1, 1000)),
        "iterative": Option("off", one_of("off", "strict", "relaxed")),
        "storage": STORAGE,
    },
    "ivfflat": {
        "lists": Option(100, whole(1, 32768), builds=True),
        "probes": Option(1, whole(1, 32768)),
        "iterative": Option("off", one_of("off", "relaxed")),
        "storage": STORAGE,
    },
}


@dataclass(frozen=True, slots=True)
class Ann:
    """A method and the value of each of its options, in the order of METHODS. Made by `parse`, so always valid.

    `str` gives the one text of a setting: options in that order, those at their default left out, so that equal
    settings are equal texts. `storage` is what the index holds of each vector: `halfvec` rounds to 16 bits, `binary`
    keeps the signs. Whatever it is, what an index finds is scored again from the full vectors.
    """

    method: str
    options: tuple[tuple[str, Value], ...] = ()

    @classmethod
    def parse(cls, setting: str | Mapping[str, Any]) -> Ann:
        """Read "exact", "hnsw", "hnsw(ef_search=100, storage=halfvec)", or {"method": "hnsw", "ef_search": 100}.

        Raises AnnError, which lists what there is.
        """
        method, given = _read_object(setting) if isinstance(setting, Mapping) else _read_text(setting)
        if not isinstance(method, str) or method not in METHODS:
            raise AnnError(f"There is no method {shown(method)}; there are {', '.join(METHODS)}.")
        for name, value in given.items():
            _check_option(method, name, value)
        complete = {name: option.default for name, option in METHODS[method].items()} | given
        _check_together(method, complete)
        return cls(method, tuple((name, complete[name]) for name in METHODS[method]))

    def __getitem__(self, name: str) -> Any:
        """The value of an option of this method."""
        return dict(self.options)[name]

    def __str__(self) -> str:
        said = [f"{name}={value}" for name, value in self.options if value != METHODS[self.method][name].default]
        return f"{self.method}({', '.join(said)})" if said else self.method

    @property
    def is_exact(self) -> bool:
        return self.method == "exact"

    @property
    def build(self) -> dict[str, Value]:
        """The options that shape the index itself. Settings of one method that agree in them share an index."""
        return {name: value for name, value in self.options if METHODS[self.method][name].builds}

    def shortfall(self, depth: int) -> str:
        """A sentence where a search for `depth` chunks cannot find so many, however many there are; else ""."""
        if self.method != "hnsw" or self["iterative"] != "off" or self["ef_search"] >= depth:
            return ""
        raising = f"raise ef_search to {depth}, or " if METHODS["hnsw"]["ef_search"].kind.holds(depth) else ""
        return (
            f"{self} finds at most {self['ef_search']} chunks a query, since ef_search is {self['ef_search']}, but "
            f"{depth} are asked for: {raising}let it scan on (iterative=strict)."
        )


def split_settings(text: str) -> list[str]:
    """The settings of a list with commas between them; commas within parentheses separate options."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def recall(retrieved: ScoredList, truth: ScoredList, k: int) -> float:
    """The share of the first `k` of the exact list that an approximate one has among its first `k`; 1 where none is.

    Both are scored alike, and a chunk counts when its score reaches that of the last of the exact ones: of chunks that
    are equally near, any will do.
    """
    wanted = min(k, len(truth))
    if not wanted:
        return 1.0
    return min(int(np.sum(retrieved.head(k).scores >= truth.scores[wanted - 1])), wanted) / wanted


def _read_object(setting: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    if "method" not in setting:
        raise AnnError(f"{shown(dict(setting))} names no method; there are {', '.join(METHODS)}.")
    return setting["method"], {name: value for name, value in setting.items() if name != "method"}


def _read_text(text: object) -> tuple[str, dict[str, Any]]:
    match = TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise AnnError(f"{shown(text)} is not a setting such as exact, hnsw or hnsw(ef_search=100, storage=halfvec).")
    given: dict[str, Any] = {}
    for part in filter(None, map(str.strip, (match["options"] or "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise AnnError(f"{shown(part)} is not an option such as {_example(match['method'])}.")
        if name in given:
            raise AnnError(f"{name} is there more than once.")
        given[name] = int(value) if value.isdecimal() else value
    return match["method"], given


def _example(method: str) -> str:
    return "probes=10" if method == "ivfflat" else "ef_search=100"


def _check_option(method: str, name: str, value: Any) -> None:
    options = METHODS[method]
    if name not in options:
        near = difflib.get_close_matches(str(name), options, n=1)
        there = (
            f"did you mean {near[0]}?" if near else f"there are {', '.join(options)}." if options else "it has none."
        )
        raise AnnError(f"{method} has no option {shown(name)}; {there}")
    if not options[name].kind.holds(value):
        raise AnnError(f"{name}: {shown(value)} is not {options[name].kind.words}.")


def _check_together(method: str, options: Mapping[str, Any]) -> None:
    """Refuse what pgvector would refuse or ignore."""
    if method == "hnsw" and options["ef_construction"] < 2 * options["m"]:
        raise AnnError(
            f"ef_construction: {options['ef_construction']} is less than twice m, which is {options['m']}; raise it to "
            f"{2 * options['m']}."
        )
    if method == "ivfflat" and options["probes"] > options["lists"]:
        raise AnnError(f"probes: {options['probes']} is more than the {options['lists']} lists there are.")
