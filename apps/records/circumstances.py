"""Circumstances of runs apart from configuration and truth. A comparison warns about each that differs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from apps.records.models import Benchmark, Run
from apps.records.models.provenance import collect_facts
from apps.records.provenance import list_llms
from benchbench.ir.planning.labels import render_share
from benchbench.ir.planning.lexical import Lexical

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
    yield from _check_words(runs)
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
    searched = [(run, run.lineage.collection) for run in runs if run.lineage.collection and not run.is_external]
    groups = group_by(searched, lambda pair: pair[1].fingerprint)
    if len(groups) > 1:
        values = {f'"{pairs[0][1].name}" {mark[:12]}': [run for run, _ in pairs] for mark, pairs in groups.items()}
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
    searched = [(run, run.lineage.index) for run in runs if run.lineage.index]
    by_name = group_by(
        searched, lambda pair: (pair[0].lineage.collection and pair[0].lineage.collection.id, pair[1].name)
    )
    for (_, name), namesakes in by_name.items():
        groups = group_by(namesakes, lambda pair: pair[1].content)
        if len(groups) > 1:
            values = {
                f"v{pairs[0][1].version} {mark[:12]}": [run for run, _ in pairs] for mark, pairs in groups.items()
            }
            yield Difference("index", "warn", f'The index "{name}" differs: {list_groups(values)}.')


def _check_words(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn if indexes of one collection divide texts by different rules, as those of other versions do."""
    searched = [
        (run, str(run.lineage.index.lexical))
        for run in runs
        if run.lineage.index and run.lineage.index.lexical and run.configuration.uses_words
        if not Lexical.parse(run.configuration.lexical).is_built_by_run
    ]
    by_collection = group_by(searched, lambda pair: pair[0].lineage.collection and pair[0].lineage.collection.id)
    for pairs in by_collection.values():
        groups = group_by(pairs, lambda pair: pair[1])
        if len(groups) > 1:
            rules = list_groups({rule: [run for run, _ in group] for rule, group in groups.items()})
            yield Difference("words", "warn", f"Their indexes divide texts into words by different rules: {rules}.")


def _check_models(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about models that had different revisions under one name."""
    indexes = {run: run.lineage.index for run in runs if run.lineage.index and run.configuration.uses_vectors}
    encoded = [run for run, index in indexes.items() if index.encoder]
    for name, mine in group_by(encoded, lambda run: indexes[run].encoder_name).items():
        yield from _check_revisions("encoder", name, group_by(mine, lambda run: indexes[run].encoder_revision))
    reranked = [run for run in runs if run.configuration.use_reranker and run.lineage.made_by]
    for name, mine in group_by(reranked, lambda run: run.configuration.effective_reranker).items():
        yield from _check_revisions("reranker", name, group_by(mine, partial(_name_revisions, "rerankers", name)))
    for name in dict.fromkeys(name for run in runs for name in list_llms(run)):
        mine = [run for run in runs if name in list_llms(run) and run.lineage.made_by]
        yield from _check_revisions("language model", name, group_by(mine, partial(_name_revisions, "llms", name)))
    engines = {run: run.lineage.engine for run in runs if run.lineage.engine}
    for alias, mine in group_by(engines, lambda run: engines[run].alias).items():
        yield from _check_revisions("search engine", alias, group_by(mine, lambda run: str(engines[run].version)))


def _check_revisions(kind: str, name: str, groups: Mapping[str, Sequence[Run]]) -> Iterator[Difference]:
    if len(groups) > 1:
        yield Difference("model", "warn", f'The {kind} "{name}" had different revisions: {list_groups(groups)}.')


def _name_revisions(kind: Literal["rerankers", "llms"], name: str, run: Run) -> str:
    """Return the revisions of a model that the workers of a run recorded."""
    revisions = [getattr(worker, kind) for worker in run.lineage.made_by]
    return ", ".join(sorted({models[name] for models in revisions if name in models})) or "none"


def _check_environments(runs: Sequence[Run]) -> Iterator[Difference]:
    """Warn about each difference in code, libraries, services, settings and devices."""
    if external := [run for run in runs if run.is_external and not run.lineage.made_by]:
        unknown = f"The software is not recorded for external runs: {name_runs(external)}."
        yield Difference("provenance", "warn", unknown)
    if unrecorded := [run for run in runs if not (run.is_external or run.lineage.made_by)]:
        yield Difference("provenance", "warn", f"The software is not recorded for {name_runs(unrecorded)}.")
    recorded = [run for run in runs if run.lineage.made_by]
    facts = {run.pk: collect_facts(run.lineage.made_by, with_models=False) for run in recorded}
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
    numbers = {worker.cores for worker in run.lineage.made_by if worker.cores is not None}
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
