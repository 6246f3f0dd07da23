"""Circumstances of runs apart from configuration and truth. A comparison warns about each that differs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.provenance import collect_facts, list_llms
from benchbench.ir.planning.labels import render_share

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


def list_circumstances(runs: Sequence[Run]) -> Iterator[Difference]:
    """Yield a warning for each difference between completed runs that may change a value or a time.

    Reads `Run.provenance`, which each run stored when it ended, so it costs no query.
    """
    yield from _check_filters(runs)
    yield from _check_collections(runs)
    yield from _check_indexes(runs)
    yield from _check_models(runs)
    yield from _check_environments(runs)
    yield from _check_processors(runs)
    yield from _check_execution(runs)


def group_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def list_groups(groups: Mapping[str, Sequence[Run]]) -> str:
    """Format values with the runs that have them: '2.3 (dense · top 100), 2.4 (3 runs)'."""
    return ", ".join(f"{value} ({name_runs(runs)})" for value, runs in groups.items())


def name_runs(runs: Sequence[Run]) -> str:
    """Name up to MAX_NAMED runs with their benchmarks; give the number of more runs."""
    if len(runs) > MAX_NAMED:
        return f"{len(runs)} runs"
    return "; ".join(f'{run.label} of "{run.benchmark}"' for run in runs)


def _check_collections(runs: Sequence[Run]) -> Iterator[Difference]:
    searched = [run for run in runs if _get_facts(run, "collection") and not run.is_external]
    groups = group_by(searched, lambda run: _get_facts(run, "collection")["fingerprint"])
    if len(groups) > 1:
        values = {
            f'"{_get_facts(group[0], "collection")["name"]}" {mark[:12]}': group for mark, group in groups.items()
        }
        yield Difference("collection", "warn", f"They searched different documents: {list_groups(values)}.")


def _check_filters(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn if runs searched different shares of the documents. Without a filter share a run searched all."""
    groups = group_by(runs, lambda run: run.configuration.filter_share or 1.0)
    if len(groups) > 1:
        shares = list_groups({render_share(share): group for share, group in groups.items()})
        sentence = (
            f"Their filters admit different shares of the documents, so they answer different questions: {shares}."
        )
        yield Difference("filter share", "warn", sentence)


def _check_indexes(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn if runs searched different content under the same index name and collection."""
    searched = [run for run in runs if _get_facts(run, "index")]
    by_name = group_by(
        searched, lambda run: (_get_facts(run, "collection").get("id"), _get_facts(run, "index")["name"])
    )
    for (_, name), namesakes in by_name.items():
        groups = group_by(namesakes, lambda run: _get_facts(run, "index")["content"])
        if len(groups) > 1:
            values = {
                f"v{_get_facts(group[0], 'index')['version']} {mark[:12]}": group for mark, group in groups.items()
            }
            yield Difference("index", "warn", f'The index "{name}" differs: {list_groups(values)}.')


def _check_models(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about models that had different revisions under one name."""
    encoded = [run for run in runs if _get_facts(run, "index").get("encoder") and run.configuration.uses_vectors]
    for name, mine in group_by(encoded, lambda run: str(_get_facts(run, "index")["encoder"])).items():
        yield from _check_revisions(
            "encoder", name, group_by(mine, lambda run: str(_get_facts(run, "index")["encoder_revision"]))
        )
    reranked = [run for run in runs if run.configuration.use_reranker and _get_workers(run)]
    for name, mine in group_by(reranked, lambda run: run.configuration.effective_reranker).items():
        yield from _check_revisions("reranker", name, group_by(mine, partial(_name_revisions, "rerankers", name)))
    for name in dict.fromkeys(name for run in runs for name in list_llms(run)):
        mine = [run for run in runs if name in list_llms(run) and _get_workers(run)]
        yield from _check_revisions("language model", name, group_by(mine, partial(_name_revisions, "llms", name)))
    engine_runs = [run for run in runs if "engine" in run.provenance]
    for alias, mine in group_by(engine_runs, lambda run: str(run.provenance["engine"]["alias"])).items():
        versions = group_by(mine, lambda run: str(run.provenance["engine"]["version"]))
        yield from _check_revisions("search engine", alias, versions)


def _check_revisions(kind: str, name: str, groups: Mapping[str, Sequence[Run]]) -> Iterator[Difference]:
    if len(groups) > 1:
        yield Difference("model", "warn", f'The {kind} "{name}" had different revisions: {list_groups(groups)}.')


def _name_revisions(kind: str, name: str, run: Run) -> str:
    """Return the revisions of a model that the workers of a run recorded."""
    revisions = [worker.get(kind, {}) for worker in _get_workers(run)]
    return ", ".join(sorted({models[name] for models in revisions if name in models})) or "none"


def _check_environments(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about each difference in code, libraries, services, settings and devices."""
    if external := [run for run in runs if run.is_external and not _get_workers(run)]:
        unknown = f"The software is not recorded for external runs: {name_runs(external)}."
        yield Difference("provenance", "warn", unknown)
    if unrecorded := [run for run in runs if not (run.is_external or _get_workers(run))]:
        yield Difference("provenance", "warn", f"The software is not recorded for {name_runs(unrecorded)}.")
    recorded = [run for run in runs if _get_workers(run)]
    facts = {
        run.pk: collect_facts({**worker, "rerankers": {}, "llms": {}} for worker in _get_workers(run))
        for run in recorded
    }
    for name in dict.fromkeys(name for run_facts in facts.values() for name in run_facts):
        groups = group_by(recorded, partial(_join_values, facts, name))
        if len(groups) > 1:
            fact = FACT_LABELS.get(name, name)
            times = " Times cannot be compared." if name in TIME_FACTS else ""
            by_label = {value[:12] if name == "git_revision" else value: group for value, group in groups.items()}
            yield Difference(fact, "warn", f"They were computed with different {fact}: {list_groups(by_label)}.{times}")


def _join_values(facts: Mapping[Any, Mapping[str, set[str]]], name: str, run: Run) -> str:
    return ", ".join(sorted(facts[run.pk].get(name, {"none"})))


def _check_processors(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about different numbers of cores, which change times of isolated runs and no values. Some state none."""
    isolated = [run for run in runs if run.benchmark.execution == Benchmark.Execution.ISOLATED]
    groups = group_by(isolated, _name_cores)
    groups.pop("", None)
    if len(groups) > 1:
        sentence = f"They ran on different numbers of cores: {list_groups(groups)}. Times cannot be compared."
        yield Difference("cores", "warn", sentence)


def _name_cores(run: Run) -> str:
    numbers = {worker["processor"]["cores"] for worker in _get_workers(run) if "processor" in worker}
    return ", ".join(map(str, sorted(numbers)))


def _check_execution(runs: Sequence[Run]) -> Iterator[Difference]:
    groups = group_by([run for run in runs if not run.is_external], _name_execution)
    if len(groups) > 1:
        yield Difference(
            "execution",
            "warn",
            f"They were executed differently: {list_groups(groups)}. Values can be compared, times cannot: shared "
            "execution adds up the batch times of its stages, and at a rate they count from when a query was due.",
        )


def _name_execution(run: Run) -> str:
    rate = run.configuration.rate
    return f"{run.benchmark.execution} at {rate:g}/s" if rate else str(run.benchmark.execution)


def _get_workers(run: Run) -> list[dict[str, Any]]:
    machines: list[dict[str, Any]] = run.provenance.get("made_by", [])
    return machines


def _get_facts(run: Run, name: str) -> dict[str, Any]:
    return run.provenance.get(name) or {}
