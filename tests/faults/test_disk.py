"""Full disk: work that needs a file fails with a message, leaves no file, and succeeds with free space."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User

from apps.accounts.tokens import issue_token
from apps.datasets.models import Dataset
from apps.execution.launching import retry
from apps.records.models import Benchmark
from benchbench.embedded.places import FOR_ROOT
from tests.faults.kit import HANG_SECONDS, hold, scenarios, undisturbed, until
from tests.faults.small_disk import seen_by
from tests.faults.work import KINDS
from tests.services import serving
from tests.sockets import cookie_of

STATED_SECONDS = 5
FULL = scenarios("fill disk", "benchmark: claimed, planned\nisolated: claimed, planned", alone=True)


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="Only root may mount a small disk.")


@pytest.mark.parametrize("scenario", FULL, ids=str)
def test_full_disk_is_named_and_needs_only_a_retry(crew, scenario, tmp_path):
    kind = KINDS[scenario.kind]
    expected = undisturbed(kind)
    operation = kind.start()
    folder = tmp_path / "vectors"
    worker = crew.start_broken(scenario, BENCHBENCH_VECTOR_DIR=str(folder))
    crew.slowest = crew.sees_the_end_of(operation)
    benchmark = Benchmark.objects.get(pk=operation.subject_id)
    assert benchmark.status == "failed"
    for run in benchmark.runs.all():
        assert "No space left on device" in run.error_message
        assert str(folder) in run.error_message
    mounted = seen_by(int(Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()[0]), folder)
    assert {file.name for file in mounted.rglob("*") if file.is_file()} == {"full"}
    crew.dismiss()
    crew.start(BENCHBENCH_VECTOR_DIR=str(folder))
    again = retry(benchmark)
    crew.sees_the_end_of(again)
    hold(kind, again, expected)


MIB = 2**20
MOST_BYTES = 8 * MIB  # of which daphne, Django and the upload each take the size of what is sent


@pytest.mark.parametrize("way", ["page", "API"])
def test_upload_to_full_disk_fails_and_the_next_succeeds(crew, way, manage, processes, tmp_path):
    folder = tmp_path / "temporary"
    disk = ("-m", "tests.faults.small_disk", str(folder), str(MOST_BYTES))
    site = serving(lambda *command, **more: manage(*disk, *command, **more), TMPDIR=str(folder))
    user = User.objects.create_superuser("ada")
    if way == "page":
        url, csrf = f"{site}/admin/datasets/dataset/add/", "x" * 32
        headers = {"Cookie": f"{cookie_of(user)}; csrftoken={csrf}", "X-CSRFToken": csrf}
    else:
        url, token = f"{site}/api/v2/benchmark-datasets", issue_token(user, name="full", scope="write")[1]
        headers = {"Authorization": f"Bearer {token}"}

    def sent(size: int) -> httpx.Response:
        judged = [{"doc_ref": {"uri": "file:///d"}, "relevance_grade": 1}]
        query = {"query_key": "1", "query_text": "red?", "relevant_docs": judged}
        declared = json.dumps({"schema_version": "1.0", "metadata": {}, "queries": [query]}).encode()
        upload = {"file": ("full.json", declared + b" " * size)}
        return httpx.post(url, data={"name": "full"}, files=upload, headers=headers, timeout=HANG_SECONDS)

    def is_empty() -> bool:
        state = os.statvfs(seen_by(processes[-1].pid, folder))  # files without a name too
        return state.f_bfree == state.f_blocks

    answer = sent(3 * MIB)
    assert (answer.status_code, "disk of the site or of the database is full" in answer.text) == (507, True), (
        answer.text
    )
    until(is_empty, "the room that it had taken")
    assert not Dataset.objects.exists()
    assert sent(MIB).status_code in (201, 302)
    assert Dataset.objects.count() == 1


@pytest.mark.long
def test_full_data_folder_is_reported_and_next_upload_succeeds(crew, tmp_path):
    """The part of it that is the embedded database: no room for rows, then none for its log, for which it stops."""
    disk = ("-m", "tests.faults.small_disk", str(FOR_ROOT), str(256 * MIB))
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    process = subprocess.run(
        [sys.executable, *disk, "-m", "tests.faults.full_data"],
        cwd=settings.BASE_DIR,
        env=environment
        | {"BENCHBENCH_DATA_DIR": str(tmp_path / "data"), "DJANGO_SETTINGS_MODULE": "benchbench.settings"},
        capture_output=True,
        text=True,
        timeout=5 * HANG_SECONDS,
    )
    assert process.returncode == 0, process.stderr
    statuses, answer, stored, names = json.loads(process.stdout.splitlines()[-1])
    assert (statuses, stored) == ([507, 302, 503], 0), answer
    assert "the disk of the site or of the database is full" in answer
    assert names == ["restarted", "taken"]
