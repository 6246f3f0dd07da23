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
MAX_NAMED = 2  # runs that a sentence names; more are only counted
FACT_LABELS = {"git_revision": "code", "postgresql": "PostgreSQL", "python": "Python"}
TIME_FACTS = ("device", "machine")


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


def list_groups(groups: Mapping[str, Sequence[Run]]) -> str:
    """Format values with the runs that have them: '2.3 (dense · top 100), 2.4 (3 runs)'."""
    return ", ".join(f"{value} ({names(runs)})" for value, runs in groups.items())


def names(runs: Sequence[Run]) -> str:
    """Name up to MAX_NAMED runs with their benchmarks; give the number of more runs."""
    if len(runs) > MAX_NAMED:
        return f"{len(runs)} runs"
    return "; ".join(f'{run.label} of "{run.benchmark}"' for run in runs)


def _collections(runs: Sequence[Run]) -> Iterator[Difference]:
    searched = [run for run in runs if _facts(run, "collection") and not run.is_external]
    groups = grouped(searched, lambda run: _facts(run, "collection")["fingerprint"])
    if len(groups) > 1:
        values = {f'"{_facts(group[0], "collection")["name"]}" {mark[:12]}': group for mark, group in groups.items()}
        yield Difference("collection", "warn", f"They searched different documents: {list_groups(values)}.")


def _indexes(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn if runs searched different content under the same index name and collection."""
    searched = [run for run in runs if _facts(run, "index")]
    by_name = grouped(searched, lambda run: (_facts(run, "collection").get("id"), _facts(run, "index")["name"]))
    for (_, name), namesakes in by_name.items():
        groups = grouped(namesakes, lambda run: _facts(run, "index")["content"])
        if len(groups) > 1:
            values = {f"v{_facts(group[0], 'index')['version']} {mark[:12]}": group for mark, group in groups.items()}
            yield Difference("index", "warn", f'The index "{name}" differs: {list_groups(values)}.')


def _models(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about models that had different revisions under one name."""
    encoded = [run for run in runs if _facts(run, "index").get("encoder") and run.config.get("search_mode") != "sparse"]
    for name, mine in grouped(encoded, lambda run: str(_facts(run, "index")["encoder"])).items():
        yield from _revisions("encoder", name, grouped(mine, lambda run: str(_facts(run, "index")["encoder_revision"])))
    reranked = [run for run in runs if run.config.get("use_reranker") and _workers(run)]
    for name, mine in grouped(reranked, lambda run: Configuration.from_dict(run.config).effective_reranker).items():
        yield from _revisions("reranker", name, grouped(mine, partial(_recorded_revisions, "rerankers", name)))
    for name in dict.fromkeys(name for run in runs for name in llms_of(run)):
        mine = [run for run in runs if name in llms_of(run) and _workers(run)]
        yield from _revisions("language model", name, grouped(mine, partial(_recorded_revisions, "llms", name)))


def _revisions(kind: str, name: str, groups: Mapping[str, Sequence[Run]]) -> Iterator[Difference]:
    if len(groups) > 1:
        yield Difference("model", "warn", f'The {kind} "{name}" had different revisions: {list_groups(groups)}.')


def _recorded_revisions(kind: str, name: str, run: Run) -> str:
    """Return the revisions of a model that the workers of a run recorded."""
    revisions = [worker.get(kind, {}) for worker in _workers(run)]
    return ", ".join(sorted({models[name] for models in revisions if name in models})) or "none"


def _environments(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about each difference in code, libraries, services, settings and devices."""
    if external := [run for run in runs if run.is_external and not _workers(run)]:
        unknown = f"The software is not recorded for external runs: {names(external)}."
        yield Difference("provenance", "warn", unknown)
    if unrecorded := [run for run in runs if not (run.is_external or _workers(run))]:
        yield Difference("provenance", "warn", f"The software is not recorded for {names(unrecorded)}.")
    recorded = [run for run in runs if _workers(run)]
    facts = {run.pk: facts_of({**worker, "rerankers": {}, "llms": {}} for worker in _workers(run)) for run in recorded}
    for name in dict.fromkeys(name for run_facts in facts.values() for name in run_facts):
        groups = grouped(recorded, partial(_listed, facts, name))
        if len(groups) > 1:
            fact = FACT_LABELS.get(name, name)
            times = " Times cannot be compared." if name in TIME_FACTS else ""
            by_label = {value[:12] if name == "git_revision" else value: group for value, group in groups.items()}
            yield Difference(fact, "warn", f"They were computed with different {fact}: {list_groups(by_label)}.{times}")


def _listed(facts: Mapping[Any, Mapping[str, set[str]]], name: str, run: Run) -> str:
    return ", ".join(sorted(facts[run.pk].get(name, {"none"})))


def _execution(runs: Sequence[Run]) -> Iterator[Difference]:
    groups = grouped([run for run in runs if not run.is_external], lambda run: str(run.benchmark.execution))
    if len(groups) > 1:
        yield Difference(
            "execution",
            "warn",
            f"They were executed differently: {list_groups(groups)}. Values can be compared, times cannot: shared "
            "execution adds up the batch times of its stages.",
        )


def _workers(run: Run) -> list[dict[str, Any]]:
    machines: list[dict[str, Any]] = run.provenance.get("made_by", [])
    return machines


def _facts(run: Run, name: str) -> dict[str, Any]:
    return run.provenance.get(name) or {}
