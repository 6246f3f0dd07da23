"""Uploads: the largest takes bounded memory; a site killed during one leaves no file."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from apps.accounts.tokens import issue_token
from apps.datasets.models import Dataset
from tests.faults.kit import HANG_SECONDS, until

STATED_SECONDS = 20
GROWTH_MB = 500  # as docs/performance.md has it
CHUNK = b" " * 2**20


@pytest.fixture
def upload(transactional_db: None, serve: Any, tmp_path: Path) -> dict[str, Any]:
    site = serve(TMPDIR=str(tmp_path))
    token = issue_token(User.objects.create_superuser("ada"), name="uploads", scope="write")[1]
    return {"url": f"{site}/api/v2/benchmark-datasets", "headers": {"Authorization": f"Bearer {token}"}}


def peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


@pytest.mark.long
def test_the_greatest_dataset_takes_bounded_memory(crew, upload, processes):
    judged = [{"doc_ref": {"uri": f"file:///{'x' * 38}{number:06}"}, "relevance_grade": 1} for number in range(100)]
    queries = [{"query_key": f"{key:06}", "query_text": "red?", "relevant_docs": judged} for key in range(1000)]
    declared = json.dumps({"schema_version": "1.0", "metadata": {}, "queries": queries}).encode()
    assert 0.9 < len(declared) / settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES <= 1
    before = peak_mb(processes[-1].pid)
    answer = httpx.post(
        **upload, data={"name": "great"}, files={"file": ("great.json", declared)}, timeout=5 * HANG_SECONDS
    )
    assert answer.status_code == 201, answer.text[:500]
    grown = peak_mb(processes[-1].pid) - before
    print(f"{len(declared) / 2**20:.1f} MiB, {len(queries):,} queries: {grown:.0f} MB")
    assert grown < GROWTH_MB


def test_site_killed_during_an_upload_leaves_no_file(crew, upload, processes, tmp_path):
    site = processes[-1]
    descriptors = Path(f"/proc/{site.pid}/fd")

    def content() -> Any:
        for _ in range(5):
            yield CHUNK
        until(lambda: any(is_in(tmp_path, file) for file in descriptors.iterdir()), "the file of the upload")
        site.kill()
        yield CHUNK * 50

    with pytest.raises(httpx.TransportError):
        httpx.post(**upload, content=content(), timeout=HANG_SECONDS)
    site.wait(HANG_SECONDS)
    assert list(tmp_path.iterdir()) == []
    assert not Dataset.objects.exists()


def is_in(folder: Path, descriptor: Path) -> bool:
    """Return whether an open file lies in a folder, or did before its name went."""
    try:
        return str(descriptor.readlink()).startswith(str(folder))
    except FileNotFoundError:
        return False
