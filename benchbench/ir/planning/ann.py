"""The methods of dense search of each store, with their options; the ANN setting, which chooses one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.options import Option, Value, Values, complete_values, read_values, render_call
from benchbench.reading.calls import CallError, list_combinations, list_values
from benchbench.reading.kinds import int_between, one_of
from benchbench.reading.objects import format_value

# Defaults and bounds are the store's own, so a bare "hnsw" is pgvector's default. Product quantisation has no default
# of `m`, in FAISS and in LanceDB.
DIMENSIONS = Option(0, int_between(0, 16_000), builds=True)  # the first so many; 0: all
# `rescore` is the number of nominees that full vectors score again, at least the depth.
RESCORE = Option(1, int_between(1, 100_000))
COMPRESSED = {
    "storage": Option("vector", one_of("vector", "halfvec", "binary"), builds=True),
    "dimensions": DIMENSIONS,
    "rescore": RESCORE,
}
SUBVECTORS = Option(16, int_between(1, 1024), builds=True)
STORES: dict[str, dict[str, dict[str, Option]]] = {
    "memory": {
        "exact": {},
        "compressed": {
            "dimensions": DIMENSIONS,
            "precision": Option("int8", one_of("float32", "float16", "int8", "binary"), builds=True),
            "rescore": Option(100, int_between(0, 100_000)),  # 0: the compressed scores decide
        },
    },
    "pgvector": {
        "exact": {},
        "hnsw": {
            "m": Option(16, int_between(2, 100), builds=True),
            "ef_construction": Option(64, int_between(4, 1000), builds=True),
            "ef_search": Option(40, int_between(1, 1000)),
            "iterative": Option("off", one_of("off", "strict", "relaxed")),
            **COMPRESSED,
        },
        "ivfflat": {
            "lists": Option(100, int_between(1, 32768), builds=True),
            "probes": Option(1, int_between(1, 32768)),
            "iterative": Option("off", one_of("off", "relaxed")),
            **COMPRESSED,
        },
    },
    "sqlite_vec": {"exact": {}},
    "chromadb": {
        "hnsw": {
            "m": Option(16, int_between(2, 100), builds=True),
            "ef_construction": Option(100, int_between(4, 1000), builds=True),
            # A collection takes another value only when it is next opened: each has a collection of its own.
            "ef_search": Option(100, int_between(1, 10_000), builds=True),
        },
    },
    "faiss": {
        "exact": {},
        "hnsw": {
            "m": Option(32, int_between(2, 100), builds=True),
            "ef_construction": Option(40, int_between(4, 1000), builds=True),
            "ef_search": Option(16, int_between(1, 10_000)),
            "storage": Option("float32", one_of("float32", "float16", "int8", "int4"), builds=True),
            "rescore": RESCORE,
        },
        "ivfpq": {
            "lists": Option(100, int_between(1, 32768), builds=True),
            "probes": Option(1, int_between(1, 32768)),
            "m": SUBVECTORS,
            "bits": Option(8, int_between(4, 8), builds=True),
        },
    },
    "lancedb": {
        "exact": {},
        "ivfpq": {
            "lists": Option(1, int_between(1, 32768), builds=True),
            "probes": Option(1, int_between(1, 32768)),
            "m": SUBVECTORS,
        },
    },
}
# The store of a method that is named alone.
STORE_OF = {"exact": "memory", "compressed": "memory", "hnsw": "pgvector", "ivfflat": "pgvector"}


def format_method(store: str, method: str) -> str:
    """Return the text of a method without options: "hnsw" is pgvector's, "faiss:hnsw" that of FAISS."""
    return method if STORE_OF.get(method) == store else f"{store}:{method}"


def find_arm(store: str) -> str:
    """Return the setting of a store named without a method, as in experiments: its first method."""
    return format_method(store, next(iter(STORES[store])))


OF_STORES = [
    format_method(store, method)
    for store, methods in STORES.items()
    for method in methods
    if STORE_OF.get(method) != store
]

TEXT = re.compile(r"\s*(?:(?P<store>[a-z_]+)\s*:\s*)?(?P<method>[a-z]+(?:\|[a-z]+)*)\s*(?:\((?P<options>[^()]*)\)\s*)?")
OBJECT = ("store", "method")  # keys of an object other than the options


class AnnError(BenchbenchError):
    """An ANN setting is unknown or invalid."""

    code = "invalid_ann"


@dataclass(frozen=True, slots=True)
class Ann:
    """A method of a store, and the value of each of its options in order. Made by `parse`, so always valid.

    `str` gives the canonical text of a setting, so equal settings are equal texts. It names the store unless the method
    implies it, then the options in order without those at their default. `storage` is the form of the vectors in
    pgvector's index: `halfvec` rounds to 16 bits, `binary` keeps the signs. The candidates of every store are scored
    again from the full vectors, unless `rescores` is false.
    """

    method: str
    options: Values = ()
    store: str = "memory"

    @classmethod
    def parse(cls, setting: str | Mapping[str, Any]) -> Ann:
        """Read "exact", "hnsw(ef_search=100)", "faiss:hnsw(m=32)", or {"method": "hnsw", "store": "faiss", "m": 32}.

        Raises AnnError, which lists the valid choices.
        """
        settings = [cls._build(*_read_object(setting))] if isinstance(setting, Mapping) else cls.expand(setting)
        if len(settings) > 1:
            raise AnnError(f"{format_value(setting)} states several settings; one is expected.")
        return settings[0]

    @classmethod
    def expand(cls, setting: str | Mapping[str, object]) -> list[Ann]:
        """Return the settings that a text or object states, the last option varying fastest. Raises AnnError.

        An option with several values, `m=8|16` or {"m": [8, 16]}, states one setting for each of them.
        """
        try:
            store, method, options = _read_object(setting) if isinstance(setting, Mapping) else _read_text(setting)
            chosen = list_combinations(setting, [list_values(one) for one in (store, method, *options.values())])
        except CallError as error:
            raise AnnError(str(error)) from None
        return [cls._build(store, method, dict(zip(options, values, strict=True))) for store, method, *values in chosen]

    @classmethod
    def _build(cls, store: Any, method: Any, values: Mapping[str, object]) -> Ann:
        store, method = _resolve_method(store, method)
        try:
            complete = complete_values(format_method(store, method), STORES[store][method], values)
        except CallError as error:
            raise AnnError(str(error)) from None
        _check_together(dict(complete))
        return cls(method, complete, store)

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option of this method."""
        return dict(self.options)[name]

    def render(self, options: Collection[str] = ()) -> str:
        """Return the text of the setting, with these `options` even at their default."""
        return render_call(self.name, self._options, self.options, options)

    __str__ = render

    @property
    def name(self) -> str:
        """Return the setting without its options."""
        return format_method(self.store, self.method)

    @property
    def compares_all(self) -> bool:
        """Return whether it guarantees the results of exact search."""
        return self.method == "exact"

    @property
    def rescores(self) -> bool:
        """Return whether the scores of full vectors decide; else those of the compressed ones do."""
        return dict(self.options).get("rescore") != 0

    def count_nominees(self, depth: int) -> int:
        """Return how many chunks the store nominates for a search for `depth` chunks."""
        return max(depth, int(dict(self.options).get("rescore", 0)))

    @property
    def build(self) -> dict[str, Value]:
        """Return the options that shape the index itself. Settings of one method that agree in them share an index."""
        return {name: value for name, value in self.options if self._options[name].builds}

    def describe_shortfall(self, depth: int) -> str:
        """Return a sentence if the settings are too narrow for a search for `depth` chunks, else ""."""
        depth = self.count_nominees(depth)
        if self.method != "hnsw" or self.store == "faiss" or self["ef_search"] >= depth:  # FAISS finds what it finds
            return self._describe_rescoring(depth)
        if self.store == "chromadb":
            return f"{self}: ChromaDB raises ef_search to the {depth} chunks that a query needs: set at least {depth}."
        if self["iterative"] != "off":
            return self._describe_rescoring(depth)
        raising = f"raise ef_search to {depth}, or " if self._options["ef_search"].kind.holds(depth) else ""
        return (
            f"{self} finds at most {self['ef_search']} chunks per query because of ef_search, but "
            f"{depth} are needed: {raising}let it scan on (iterative=strict)."
        )

    def _describe_rescoring(self, depth: int) -> str:
        """Return a sentence if `rescore` is set and has no effect, else ""."""
        rescore = dict(self.options).get("rescore")
        if not rescore or rescore == self._options["rescore"].default or int(rescore) >= depth:
            return ""
        return (
            f"{self}: a query needs {depth} chunks, and all of them are scored by their full vectors, so rescore has "
            f"no effect: raise it above {depth}, or leave it out."
        )

    def list_limits(self) -> list[str]:
        """Return the options that, raised, let it find more of what exact search finds; [] if none does."""
        options = dict(self.options)
        is_compressed = {options.get("storage"), options.get("precision")} - {None, "vector", "float32"}
        limits = ["ef_search"] if "ef_search" in options else []
        limits += ["probes"] if "probes" in options and self["probes"] < self["lists"] else []
        limits += ["rescore"] if "rescore" in options and (is_compressed or options.get("dimensions")) else []
        limits += ["m"] if self.method == "ivfpq" else []
        return [name for name in limits if self._options[name].kind.holds(self[name] + 1)]

    @property
    def _options(self) -> Mapping[str, Option]:
        return STORES[self.store][self.method]


def _resolve_method(store: Any, method: Any) -> tuple[str, str]:
    """Return the named store and method. A method without a store belongs to the first store that has it."""
    if store is None:
        if not isinstance(method, str) or method not in STORE_OF:
            raise AnnError(
                f"The method {format_value(method)} does not exist; choose one of {', '.join(STORE_OF)}.{OF_A_STORE}"
            )
        return STORE_OF[method], method
    if not isinstance(store, str) or store not in STORES:
        raise AnnError(f"The store {format_value(store)} does not exist; choose one of {', '.join(STORES)}.")
    if not isinstance(method, str) or method not in STORES[store]:
        raise AnnError(
            f"The store {store} has no method {format_value(method)}; choose one of {', '.join(STORES[store])}."
        )
    return store, method


OF_A_STORE = f" With a store before it: {', '.join(OF_STORES)}."


def _read_object(setting: Mapping[str, object]) -> tuple[Any, Any, dict[str, Any]]:
    if "method" not in setting:
        raise AnnError(
            f"{format_value(dict(setting))} must have a method; choose one of {', '.join(STORE_OF)}.{OF_A_STORE}"
        )
    values = {name: value for name, value in setting.items() if name not in OBJECT}
    return setting.get("store"), setting["method"], values


def _read_text(text: object) -> tuple[Any, Any, dict[str, Any]]:
    match = TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise AnnError(
            f"{format_value(text)} is not a setting such as exact, hnsw or hnsw(ef_search=100, "
            f"storage=halfvec).{OF_A_STORE}"
        )
    example = "probes=10" if match["method"].startswith("ivf") else "ef_search=100"
    return match["store"], match["method"].split("|"), read_values(match["options"] or "", example=example)


def _check_together(options: Mapping[str, Any]) -> None:
    """Refuse what pgvector would refuse or ignore, and what means nothing to any store."""
    if "iterative" in options and "m" in options and options["ef_construction"] < 2 * options["m"]:
        raise AnnError(
            f"ef_construction: {options['ef_construction']} is less than twice m, which is "
            f"{options['m']}; raise it to {2 * options['m']}."
        )
    if "probes" in options and options["probes"] > options["lists"]:
        raise AnnError(f"probes: {options['probes']} is more than lists, which is {options['lists']}.")
