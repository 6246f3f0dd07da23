"""Ids of retrieved items that survive a new index, and the run of live results that uses them.

An item's id derives from its topic, never from its summary, which is generated and differs after every indexing. The
rules are versioned, because judgments are useless once ids are computed differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Annotated, Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from benchbench.errors import BenchbenchError
from benchbench.reading.objects import Filled, Listed, Must, StrictRecord

CURRENT = "v1"
GENERATED = ("llm", "completion")  # in the `source` of a result that a model generated instead of retrieving it


class CanonicalizationError(BenchbenchError):
    """A version of the rules is unknown, or a result cannot be put in a run."""

    code = "canonicalization"


@dataclass(frozen=True, slots=True)
class RunEntry(StrictRecord):
    """One retrieved item of one query; ranks count from 1."""

    query_id: Filled
    canonical_item_id: Filled
    rank: Annotated[int, Must("an integer from 1", lambda rank: rank >= 1)]
    score: float


@dataclass(frozen=True, slots=True)
class Run(StrictRecord):
    """Results of one system, query by query."""

    run_id: Filled
    entries: Listed[RunEntry]

    def as_dict(self) -> dict[str, Any]:
        """Return the content of a run.json, of plain texts and numbers."""
        return {"run_id": self.run_id, "entries": [asdict(entry) for entry in self.entries]}


def get_rules(version: str) -> Callable[[str | None, str | None], str | None]:
    """Return the function (topic_id, topic) → id of a version of the rules; it returns None for an item without an id.

    Raises CanonicalizationError for an unknown version.
    """
    if version not in VERSIONS:
        raise CanonicalizationError(
            f"The canonicalization version {version[:40]!a} is not known; choose one of "
            f"{', '.join(VERSIONS)}. Ids of other versions cannot be compared.",
            field="canonicalization_version",
        )
    return VERSIONS[version]


def export_retrieval_results_to_run(
    results: Mapping[Any, Iterable[object]], run_id: str | UUID | Integral, *, version: str = CURRENT
) -> Run:
    """Return the run of live results: query id → results, objects or mappings with topic_id, topic, score, metadata.

    Ids may be texts, UUIDs or whole numbers; scores may be numbers of Python or NumPy. The run holds Python texts and
    floats. Results whose metadata.source contains "llm" or "completion" (in any case) and those without an id are left
    out. Equal scores keep their order. A ranking holds an item once, so of two results with one id the better is kept.
    Raises CanonicalizationError for an invalid id or score, and for two query ids that are equal as text.
    """
    name = get_rules(version)
    entries: list[RunEntry] = []
    query_ids: set[str] = set()
    for key, hits in results.items():
        query_id = _read_id(key, "query id")
        if query_id in query_ids:
            raise CanonicalizationError(f"Two queries have the id {query_id[:60]!a}.", field="query_id")
        query_ids.add(query_id)
        scores: dict[str, float] = {}
        retrieved = [result for result in hits if not _is_generated(result)]
        for result in sorted(retrieved, key=lambda result: _score(result, query_id), reverse=True):
            item = name(_read_optional_id(result, "topic_id"), _read_optional_id(result, "topic"))
            if item is not None:
                scores.setdefault(item, _score(result, query_id))
        entries += [RunEntry(query_id, item, rank, score) for rank, (item, score) in enumerate(scores.items(), start=1)]
    return Run(_read_id(run_id, "run_id"), tuple(entries))


def _v1(topic_id: str | None, topic: str | None) -> str | None:
    """Return a non-blank topic id, stripped; else the name-based UUID of the topic, stripped and in lower case."""
    if topic_id and topic_id.strip():
        return topic_id.strip()
    if topic and topic.strip():
        return str(uuid5(NAMESPACE_DNS, topic.strip().lower()))
    return None


VERSIONS: dict[str, Callable[[str | None, str | None], str | None]] = {CURRENT: _v1}


def _is_generated(result: object) -> bool:
    source = str(_get_field(_get_field(result, "metadata") or {}, "source") or "").lower()
    return any(word in source for word in GENERATED)


def _score(result: object, query_id: str) -> float:
    score = _get_field(result, "score")
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
        raise CanonicalizationError(
            f"A result of the query {query_id[:60]!a} has the score {score!r:.40}: it must be a finite number.",
            field="score",
        )
    return float(score)


def _read_id(value: object, noun: str) -> str:
    """Return an id as text: str of a subclass of it too, such as NumPy's."""
    if isinstance(value, bool) or not isinstance(value, str | UUID | Integral):
        raise CanonicalizationError(
            f"{value!r:.60} is not a valid {noun}: it must be a text, a UUID or a whole number.",
            field=noun.replace(" ", "_"),
        )
    return str(value)


def _read_optional_id(result: object, name: str) -> str | None:
    value = _get_field(result, name)
    return None if value is None else _read_id(value, name)


def _get_field(thing: object, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
