"""Provenance of a run: data, indexes, models, code and machine."""

import platform
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from os import sched_getaffinity
from typing import Any

from django.conf import settings
from django.db import connection
from threadpoolctl import threadpool_info

from apps.benchmarks.measuring.evaluating import get_policies
from apps.benchmarks.models import Run
from apps.retrieval.describing import describe_identity
from apps.retrieval.encoders.model_files import name_device
from apps.retrieval.llms.asking import find_llm_revision
from apps.retrieval.rerankers import Reranker
from benchbench.timestamps import read_git_sha, timestamp

# The settings that decide whether a query is an error and how its time is taken.
SETTINGS = (
    "BENCHBENCH_QUERY_TIMEOUT_MS",
    "BENCHBENCH_MAX_ATTEMPTS",
    "BENCHBENCH_BATCH_SECONDS",
    "BENCHBENCH_RESIDENT_BYTES",
)
LIBRARIES = ("numpy", "torch", "sentence-transformers", "transformers", "bm25s", "PyStemmer", "pgvector", "psycopg")


def build_provenance(run: Run, *, made_by: list[Any]) -> dict[str, Any]:
    """Return everything that the run's rankings depend on, to be stored when the run ends.

    `made_by` has the distinct environments of the workers that took part, each recorded by its worker.
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
    }


def build_environment(rerankers: Iterable[Reranker], llms: Iterable[str]) -> dict[str, Any]:
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


def _count_threads() -> dict[str, int]:
    """Return the threads of a matrix product of NumPy, as limited now, and those of torch if it is loaded."""
    threads = max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
    torch = sys.modules.get("torch")
    return {"numpy_threads": threads, **({"torch_threads": torch.get_num_threads()} if torch else {})}


def list_llms(run: Run) -> list[str]:
    """Return the language models of an ended run, each with its server.

    These are the model of its index, used to build or search it, and the model that rewrote queries. `made_by` has the
    revisions of those that were asked.
    """
    index = run.provenance.get("index") or {}
    index_llms = [f"{index['llm_parameters'].get('provider')}:{index['llm']}"] if index.get("llm") else []
    rewrites = run.configuration.rewrites
    return [*index_llms, str(run.configuration.llm)] if rewrites else index_llms


def list_revisions(run: Run, llm: str) -> list[str]:
    """Return the distinct revisions of a language model that a run asked."""
    return sorted({entry["llms"][llm] for entry in run.provenance.get("made_by", []) if llm in entry.get("llms", {})})


def read_code_version() -> dict[str, Any]:
    """Return the version of BenchBench, with the commit if it runs from a checkout."""
    return {name: _read_code()[name] for name in ("git_revision", "python")}


def collect_facts(environments: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """Return the values of each fact about the workers, by name: {"numpy": {"2.4.0"}, "device": {"cpu"}, …}."""
    facts: dict[str, set[str]] = {}
    for environment in environments:
        worker_facts = {key: value for key, value in environment.items() if not isinstance(value, dict)}
        for section in ("libraries", "rerankers", "llms", "settings"):
            worker_facts |= environment.get(section, {})
        for name, value in worker_facts.items():
            facts.setdefault(name, set()).add("none" if value is None else str(value))
    return facts


def compare_environments(then: Iterable[dict[str, Any]], now: Iterable[dict[str, Any]]) -> list[str]:
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
def _read_code() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _find_version(name) for name in LIBRARIES},
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


def find_git_revision(run: Run) -> str | None:
    """Return the revision of the code that ran the queries; None if it is unknown or there are several."""
    revisions = {worker.get("git_revision") for worker in run.provenance.get("made_by", [])}
    return revisions.pop() if len(revisions) == 1 else None
