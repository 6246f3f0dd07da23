"""What a run's numbers rest on: data, indexes, models, code and machine."""

import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from typing import Any

from django.conf import settings
from django.db import connection

from apps.benchmarks.models import Run
from apps.retrieval.encoders import device_name
from apps.retrieval.rerankers import Reranker

LIBRARIES = ("numpy", "torch", "sentence-transformers", "transformers", "bm25s", "PyStemmer", "pgvector", "psycopg")


def provenance_of(run: Run) -> dict[str, Any]:
    """Return everything that the run's rankings and values depend on, read where it was computed."""
    benchmark, index = run.benchmark, run.index
    version, mapping = benchmark.dataset_version, benchmark.mapping
    return {
        "dataset": {"id": str(version.dataset_id), "version": version.number, "content_hash": version.content_hash},
        "mapping": {"id": str(mapping.pk), "resolved_at": mapping.resolved_at and mapping.resolved_at.isoformat()},
        "collection": {"id": str(mapping.collection_id), "fingerprint": mapping.collection_fingerprint},
        "index": index
        and {
            "id": str(index.pk),
            "name": index.name,
            "version": index.version,
            "fingerprint": index.fingerprint,
            "encoder": index.encoder,
            "encoder_revision": index.encoder_revision,
        },
        "config_hash": run.config_hash,
        "seed": benchmark.seed,
        "execution": benchmark.execution,
        "policies": {"unresolved": benchmark.unresolved, "empty_queries": benchmark.empty_queries},
    }


def environment(rerankers: Iterable[Reranker]) -> dict[str, Any]:
    """Return what this process computes with: libraries, services, code, device, and the rerankers' revisions."""
    revisions: dict[str, set[str]] = {}
    for reranker in rerankers:  # one that is made for an index has a revision for each
        revisions.setdefault(reranker.name, set()).add(reranker.revision)
    return {
        **_code(),
        "device": device_name(),
        "rerankers": {name: ", ".join(sorted(found)) for name, found in sorted(revisions.items())},
    }


@cache
def _code() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _version(name) for name in LIBRARIES},
        "postgresql": _postgresql_version(),
        "git_revision": _git_revision(),
    }


def _postgresql_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Return the commit that the code was checked out at; None outside a checkout."""
    command = ["git", "-C", str(settings.BASE_DIR), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
