"""Experiments: the YAML that says what the retrieval-strategy benchmark runs (docs/formats.md)."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchbench.files.errors import FileFormatError
from benchbench.ir.chunking import ChunkingError, check_chunk_parameters
from benchbench.reading import strict_yaml
from benchbench.reading.fields import Fields, without_nulls
from benchbench.reading.strict_json import read_text

PRESETS = {"quick_test": (5, 1), "baseline": (10, 3), "full": (None, 5)}  # max_documents, runs_per_query
MOST_CHUNKS = 1000
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Data:
    """What is searched and asked. Paths are as stated: relative ones start at the directory of the YAML file."""

    documents_dir: str
    ground_truth_path: str
    max_documents: int | None = None
    max_queries: int | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """How it is measured. `top_k_values` are cutoffs: there is one search, at the greatest."""

    runs_per_query: int = 3
    top_k_values: tuple[int, ...] = (1, 3, 5, 10)
    random_seed: int = 42


@dataclass(frozen=True, slots=True)
class Embedding:
    """A model that makes vectors, and what runs it."""

    model: str
    provider: str = "sbert"


@dataclass(frozen=True, slots=True)
class LLM:
    """A language model, and what runs it."""

    model: str
    provider: str = "ollama"
    base_url: str | None = None
    temperature: float = 0.1
    max_tokens: int = 500


@dataclass(frozen=True, slots=True)
class Backend:
    """A vector store; `path` is where one that keeps files keeps them."""

    name: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to cut and to search, its sizes in characters.

    `doc_top_k` and `section_top_k` are how many documents and sections the lod strategies go on with, level by level;
    what a search returns is cut at `top_k_values`. `max_layers` and `cluster_threshold` shape the tree of raptor.
    """

    name: str
    chunk_size: int = 500
    chunk_overlap: int = 50
    doc_top_k: int = 5
    section_top_k: int = 10
    max_layers: int = 3
    cluster_threshold: float = 0.1


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment with every default filled in."""

    id: str
    data: Data
    embeddings: tuple[Embedding, ...]
    backends: tuple[Backend, ...]
    strategies: tuple[Strategy, ...]
    llms: tuple[LLM, ...] = ()
    benchmark: Repetition = Repetition()
    description: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as plain JSON with every key, in the order of the format; `experiment_of` reads it."""
        stated = asdict(self, dict_factory=_with_lists)
        return {key: stated[key] for key in KEYS}

    def as_yaml(self) -> str:
        """Return the file that states the experiment with every key."""
        return strict_yaml.dump(self.as_dict())

    def preset(self, name: str) -> "Experiment":
        """Return the experiment at the size of a preset: documents that are kept, and how often a query is asked."""
        if name not in PRESETS:
            raise FileFormatError(f"There is no preset {name[:40]!a}; there are {', '.join(PRESETS)}.", field="preset")
        documents, repetitions = PRESETS[name]
        return replace(
            self,
            data=replace(self.data, max_documents=documents),
            benchmark=replace(self.benchmark, runs_per_query=repetitions),
        )


class Kind(NamedTuple):
    """What a value may be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def _whole(least: int, most: int) -> Kind:
    # By type, since isinstance would take true for 1.
    return Kind(f"a whole number from {least:,} to {most:,}", lambda v: type(v) is int and least <= v <= most)


def _number(most: float) -> Kind:
    return Kind(f"a number from 0 to {most:g}", lambda v: type(v) in (int, float) and 0 <= v <= most)


def _one_of(*choices: str) -> Kind:
    return Kind(f"one of {', '.join(choices)}", lambda v: isinstance(v, str) and v in choices)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= 500


def _are_cutoffs(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(type(k) is int and 1 <= k <= MOST_CHUNKS for k in value) and len(set(value)) == len(value)


ANY_TEXT = Kind("a text", lambda v: isinstance(v, str))
TEXT = Kind("a text of 1 to 500 printable characters", lambda v: _is_text(v))
NAME = Kind(
    "up to 100 letters, digits, dots, hyphens and underscores, since it names a directory",
    lambda v: isinstance(v, str) and ID.fullmatch(v) is not None,
)
CUTOFFS = Kind(f"a list of different whole numbers from 1 to {MOST_CHUNKS:,}", _are_cutoffs)
OBJECT = Kind("an object", lambda v: isinstance(v, dict))
LIST = Kind("a list", lambda v: isinstance(v, list))
COUNT = _whole(1, 10**9)

KEYS = {
    **{"id": NAME, "description": ANY_TEXT, "data": OBJECT, "benchmark": OBJECT},
    **{"embeddings": LIST, "llms": LIST, "backends": LIST, "strategies": LIST},
}
KINDS: dict[type, dict[str, Kind]] = {
    Experiment: KEYS,
    Data: {"documents_dir": TEXT, "ground_truth_path": TEXT, "max_documents": COUNT, "max_queries": COUNT},
    Repetition: {"runs_per_query": _whole(1, 100), "top_k_values": CUTOFFS, "random_seed": _whole(0, 2**63 - 1)},
    Embedding: {"model": TEXT, "provider": TEXT},
    LLM: {
        **{"model": TEXT, "provider": TEXT, "base_url": TEXT},
        **{"temperature": _number(10), "max_tokens": _whole(1, 10**6)},
    },
    Backend: {"name": _one_of("memory", "chromadb", "sqlite_vec", "pgvector"), "path": TEXT},
    Strategy: {
        "name": _one_of("flat", "raptor", "lod_embed", "lod_llm"),
        "chunk_size": _whole(1, 10**6),
        "chunk_overlap": _whole(0, 10**6),
        "doc_top_k": _whole(1, MOST_CHUNKS),
        "section_top_k": _whole(1, MOST_CHUNKS),
        "max_layers": _whole(1, 100),
        "cluster_threshold": _number(1),
    },
}


def read_experiment(path: Path) -> Experiment:
    """Return the experiment that a YAML file states; raises a sentence that names file and key."""
    return experiment_of(strict_yaml.parse(read_text(path), where=path.name), where=path.name)


def experiment_of(value: Any, *, where: str) -> Experiment:
    """Return the experiment that plain data states; `where` names the file in errors.

    A key that is null is not stated. Raises a sentence that names file and key for whatever is unknown, missing or
    not what it must be, and for an entry of a list that repeats another.
    """
    prefix = f"{where}, "
    stated = _stated(value, Experiment, prefix)
    stated["data"] = _record(stated["data"], Data, f"{prefix}data.")
    stated["benchmark"] = _record(stated.get("benchmark", {}), Repetition, f"{prefix}benchmark.")
    for key, record in (("embeddings", Embedding), ("llms", LLM), ("backends", Backend), ("strategies", Strategy)):
        stated[key] = _entries(stated.get(key, []), record, key, prefix)
        if not stated[key] and key != "llms":
            raise FileFormatError(f"{prefix}{key} is an empty list: there is nothing to run.", field=key)
    for index, strategy in enumerate(stated["strategies"]):
        _check_chunks(strategy, f"{prefix}strategies[{index}].chunk_overlap")
    return Experiment(**stated)


def _stated(value: Any, record: type, prefix: str) -> dict[str, Any]:
    """Return the keys that are stated, each of its kind and none of the required ones missing."""
    kinds = KINDS[record]
    keys = Fields(without_nulls(value), kinds, prefix=prefix)
    for field in fields(record):
        if field.default is MISSING:
            keys.value(field.name)
    for key, stated in keys.values.items():
        if not kinds[key].holds(stated):
            raise keys.error(key, f"must be {kinds[key].words}, not {_shown(stated)}")
    return {key: tuple(stated) if kinds[key] is CUTOFFS else stated for key, stated in keys.values.items()}


def _record(value: Any, record: type[Record], prefix: str) -> Record:
    return record(**_stated(value, record, prefix))


def _entries(items: list[Any], record: type[Record], key: str, prefix: str) -> tuple[Record, ...]:
    found: list[Record] = []
    for index, item in enumerate(items):
        place = f"{key}[{index}]"
        entry = _record(item, record, f"{prefix}{place}.")
        if entry in found:
            raise FileFormatError(f"{prefix}{place} repeats {key}[{found.index(entry)}].", field=place)
        found.append(entry)
    return tuple(found)


def _check_chunks(strategy: Strategy, place: str) -> None:
    try:
        check_chunk_parameters(size=strategy.chunk_size, overlap=strategy.chunk_overlap)
    except ChunkingError as error:
        raise FileFormatError(f"{place}: {error.message}", field="chunk_overlap") from None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _with_lists(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in pairs}
