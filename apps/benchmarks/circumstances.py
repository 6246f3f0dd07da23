"""Circumstances of runs apart from configuration and truth. A comparison warns about each that differs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from apps.benchmarks.models import Run
from apps.benchmarks.provenance import facts_of, llms_of
from benchbench.ir.planning.configuration import Configuration

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
MOST_NAMED = 2  # runs that a sentence names; more are only counted
SAID = {"git_revision": "code", "postgresql": "PostgreSQL", "python": "Python"}
TIMED = ("device", "machine")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between runs, as a sentence with its values. "refuse": their numbers must not be compared."""

    about: str
    severity: Literal["refuse", "warn"]
    sentence: str


def circumstances(runs: Sequence[Run]) -> Iterator[Difference]:
    """Yield a warning for each difference between completed runs that may change a value or a time.

    Reads `Run.provenance`, which each run stored when it ended, so it costs no query.
    """
    yield from _collections(runs)
    yield from _indexes(runs)
    yield from _models(runs)
    yield from _environments(runs)
    yield from _execution(runs)


def grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def told(groups: Mapping[str, Sequence[Run]]) -> str:
    """Format values with the runs that have them: '2.3 (dense · top 100), 2.4 (3 runs)'."""
    return ", ".join(f"{value} ({names(runs)})" for value, runs in groups.items())


def names(runs: Sequence[Run]) -> str:
    """Name up to MOST_NAMED runs with their benchmarks; give the number of more runs."""
    if len(runs) > MOST_NAMED:
        return f"{len(runs)} runs"
    return "; ".join(f'{run.label} of "{run.benchmark}"' for run in runs)


def _collections(runs: Sequence[Run]) -> Iterator[Difference]:
    searched = [run for run in runs if _part(run, "collection") and not run.is_external]
    groups = grouped(searched, lambda run: _part(run, "collection")["fingerprint"])
    if len(groups) > 1:
        values = {f'"{_part(mine[0], "collection")["name"]}" {mark[:12]}': mine for mark, mine in groups.items()}
        yield Difference("collection", "warn", f"They searched different documents: {told(values)}.")


def _indexes(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn if runs searched different content under the same index name and collection."""
    searched = [run for run in runs if _part(run, "index")]
    same = grouped(searched, lambda run: (_part(run, "collection").get("id"), _part(run, "index")["name"]))
    for (_, name), mine in same.items():
        groups = grouped(mine, lambda run: _part(run, "index")["content"])
        if len(groups) > 1:
            values = {f"v{_part(some[0], 'index')['version']} {mark[:12]}": some for mark, some in groups.items()}
            yield Difference("index", "warn", f'The index "{name}" is not the same: {told(values)}.')


def _models(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about models that had different revisions under one name."""
    encoded = [run for run in runs if _part(run, "index").get("encoder") and run.config.get("search_mode") != "sparse"]
    for name, mine in grouped(encoded, lambda run: str(_part(run, "index")["encoder"])).items():
        yield from _revisions("encoder", name, grouped(mine, lambda run: str(_part(run, "index")["encoder_revision"])))
    reranked = [run for run in runs if run.config.get("use_reranker") and _made_by(run)]
    for name, mine in grouped(reranked, lambda run: Configuration.from_dict(run.config).effective_reranker).items():
        yield from _revisions("reranker", name, grouped(mine, partial(_noted, "rerankers", name)))
    for name in dict.fromkeys(name for run in runs for name in llms_of(run)):
        mine = [run for run in runs if name in llms_of(run) and _made_by(run)]
        yield from _revisions("language model", name, grouped(mine, partial(_noted, "llms", name)))


def _revisions(kind: str, name: str, groups: Mapping[str, Sequence[Run]]) -> Iterator[Difference]:
    if len(groups) > 1:
        yield Difference("model", "warn", f'The {kind} "{name}" had different revisions: {told(groups)}.')


def _noted(kind: str, name: str, run: Run) -> str:
    """Return the revisions of a model that the workers of a run recorded."""
    noted = [made.get(kind, {}) for made in _made_by(run)]
    return ", ".join(sorted({models[name] for models in noted if name in models})) or "none"


def _environments(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about each difference in code, libraries, services, settings and devices."""
    if elsewhere := [run for run in runs if run.is_external and not _made_by(run)]:
        unknown = f"External runs, so it is not known what computed them: {names(elsewhere)}."
        yield Difference("provenance", "warn", unknown)
    if silent := [run for run in runs if not (run.is_external or _made_by(run))]:
        yield Difference("provenance", "warn", f"It is not known what computed {names(silent)}.")
    speaking = [run for run in runs if _made_by(run)]
    facts = {run.pk: facts_of({**made, "rerankers": {}, "llms": {}} for made in _made_by(run)) for run in speaking}
    for name in dict.fromkeys(name for of_run in facts.values() for name in of_run):
        groups = grouped(speaking, partial(_listed, facts, name))
        if len(groups) > 1:
            said = SAID.get(name, name)
            times = " Times cannot be compared." if name in TIMED else ""
            shown = {value[:12] if name == "git_revision" else value: mine for value, mine in groups.items()}
            yield Difference(said, "warn", f"They were computed with different {said}: {told(shown)}.{times}")


def _listed(facts: Mapping[Any, Mapping[str, set[str]]], name: str, run: Run) -> str:
    return ", ".join(sorted(facts[run.pk].get(name, {"none"})))


def _execution(runs: Sequence[Run]) -> Iterator[Difference]:
    groups = grouped([run for run in runs if not run.is_external], lambda run: str(run.benchmark.execution))
    if len(groups) > 1:
        yield Difference(
            "execution",
            "warn",
            f"They were executed differently: {told(groups)}. Values can be compared, times cannot: with shared "
            "execution they are sums of what the stages cost in batches.",
        )


def _made_by(run: Run) -> list[dict[str, Any]]:
    machines: list[dict[str, Any]] = run.provenance.get("made_by", [])
    return machines


def _part(run: Run, name: str) -> dict[str, Any]:
    return run.provenance.get(name) or {}
