"""Provenance of a run: data, indexes, models, code and machine."""

import platform
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from os import sched_getaffinity

from django.conf import settings
from django.db import connection
from threadpoolctl import ThreadpoolController

from apps.records.measuring.evaluating import get_policies
from apps.records.models import Run
from apps.records.models.provenance import Environment, collect_facts
from apps.retrieval.describing import describe_identity
from apps.retrieval.encoders.model_files import name_device
from apps.retrieval.llms.asking import find_llm_revision
from apps.retrieval.rerankers import Reranker
from apps.retrieval.search.lexical_indexes import USUAL
from apps.retrieval.search.words import find_words
from benchbench.ir.planning.lexical import Lexical
from benchbench.reading.strict_json import attributes
from benchbench.timestamps import read_git_sha, timestamp

# The settings that decide whether a query is an error and how its time is taken.
SETTINGS = (
    "BENCHBENCH_QUERY_TIMEOUT_MS",
    "BENCHBENCH_MAX_ATTEMPTS",
    "BENCHBENCH_BATCH_SECONDS",
    "BENCHBENCH_RESIDENT_BYTES",
)
LIBRARIES = (
    *("numpy", "torch", "sentence-transformers", "transformers", "bm25s", "PyStemmer", "regex", "stopwordsiso"),
    *("pgvector", "psycopg"),
)
EXTRAS = "sudachipy", "sudachidict-core", "rjieba", "kiwipiepy", "pythainlp"  # recorded where they are installed


def build_provenance(run: Run, *, made_by: Sequence[object], **more: object) -> dict[str, object]:
    """Return everything that the run's rankings depend on, to be stored when the run ends.

    `made_by` has the distinct environments of the workers that took part, each recorded by its worker. `more` has the
    `ann`, `engine` or `file` of a run that has one, None for others.
    """
    benchmark, index = run.benchmark, run.index
    version, mapping = benchmark.dataset_version, benchmark.mapping
    return {
        "dataset": {
            "id": str(version.dataset_id),
            "name": version.dataset.name,
            "version": version.number,
            "content_hash": version.content_hash,
        },
        "mapping": {
            "id": str(mapping.pk),
            "name": mapping.name,
            "resolved_at": mapping.resolved_at and timestamp(mapping.resolved_at),
        },
        "collection": {
            "id": str(mapping.collection_id),
            "name": mapping.collection.name,
            "fingerprint": benchmark.searched.fingerprint if benchmark.searched else mapping.collection_fingerprint,
        },
        "index": index and {"id": str(index.pk), "fingerprint": index.fingerprint, **describe_identity(index)},
        "config_hash": run.config_hash,
        "seed": benchmark.seed,
        "execution": benchmark.execution,
        "runs_per_query": benchmark.runs_per_query,
        "policies": get_policies(benchmark),
        "made_by": made_by,
        **{name: facts for name, facts in {"words": _describe_words(run), **more}.items() if facts is not None},
    }


def _describe_words(run: Run) -> dict[str, object] | None:
    """Return the words that a run searched, if they are others than those of its index as it was built."""
    setting = Lexical.parse(run.configuration.lexical) if run.configuration.uses_words else USUAL
    if run.index is None or run.index.chunk_set is None or not setting.is_built_by_run:
        return None
    words = find_words(run.index.chunk_set, setting)
    return dict(attributes(words, "engine", "parameters")) if words else None


def build_environment(rerankers: Iterable[Reranker], llms: Iterable[str]) -> dict[str, object]:
    """Return the environment of this process: libraries, services, code, device, and the revisions of models.

    Covers the given rerankers and the language models that were asked, such as ollama:llama3. `processor` decides times
    alone, so `collect_facts` leaves it out.
    """
    revisions: dict[str, set[str]] = {}
    for reranker in rerankers:  # a reranker made for an index has a revision per index
        revisions.setdefault(reranker.name, set()).add(reranker.revision)
    llm_versions = {llm: find_llm_revision(*llm.split(":", 1)) for llm in sorted(set(llms))}
    return {
        **_read_code(),
        "device": name_device(),
        "processor": {"cores": len(sched_getaffinity(0)), **_count_threads()},
        "settings": {name: getattr(settings, name) for name in SETTINGS},
        "rerankers": {name: ", ".join(sorted(versions)) for name, versions in sorted(revisions.items())},
        **({"llms": llm_versions} if llm_versions else {}),
    }


@cache
def _find_products() -> ThreadpoolController:
    """Return the libraries of NumPy's matrix products: to go through all libraries of a process takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def _count_threads() -> dict[str, int]:
    """Return the threads of a matrix product of NumPy, as limited now, and those of torch if it is loaded."""
    threads = max((pool["num_threads"] for pool in _find_products().info()), default=1)
    torch = sys.modules.get("torch")
    return {"numpy_threads": threads, **({"torch_threads": torch.get_num_threads()} if torch else {})}


def list_llms(run: Run) -> list[str]:
    """Return the language models of an ended run, each with its server.

    These are the model of its index, used to build or search it, and the model that rewrote queries. `made_by` has the
    revisions of those that were asked.
    """
    index = run.lineage.index
    index_llms = [index.llm_name] if index and index.llm else []
    return [*index_llms, str(run.configuration.llm)] if run.configuration.rewrites else index_llms


def read_code_version() -> dict[str, object]:
    """Return the version of BenchBench, with the commit if it runs from a checkout."""
    return {name: _read_code()[name] for name in ("git_revision", "python")}


def compare_environments(then: Iterable[Environment], now: Iterable[Environment]) -> list[str]:
    """Return a phrase for each fact in which two groups of workers differ: "numpy was 2.3, is 2.4"."""
    before, after = collect_facts(then), collect_facts(now)
    return [
        f"{name.replace('_', ' ')} was {_join_values(before.get(name))}, is {_join_values(after.get(name))}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


def _join_values(values: set[str] | None) -> str:
    return ", ".join(sorted(values)) if values else "missing"


@cache
def _read_code() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _find_version(name) for name in LIBRARIES}
        | {name: version for name in EXTRAS if (version := _find_version(name))},
        "postgresql": _load_postgresql_version(),
        "git_revision": read_git_sha(settings.BASE_DIR),
    }


def _load_postgresql_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
