"""A site whose embedded database has no room: sends it datasets before and after there is some, and prints the answers.

The room ends first for the rows, which PostgreSQL refuses, and then for its log, for which it stops.

`python -m tests.faults.small_disk FOLDER BYTES -m tests.faults.full_data`, with the FOLDER in which root's part of data
folders lies.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import django
from django.db.utils import OperationalError

from benchbench.embedded.places import FOR_ROOT
from tests.waiting import until

LEFT = 2**20
WRITE_LOG = "SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000000))"


def main() -> None:
    from benchbench import embedded

    embedded.ensure()
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from apps.datasets.models import Dataset

    call_command("migrate", verbosity=0)
    client = Client(raise_request_exception=False, headers={"host": "localhost"})
    client.force_login(User.objects.create_superuser("ada"))
    run_sql("SELECT pg_switch_wal()")
    run_sql(WRITE_LOG)  # which begins a segment of 16 MB, so that the rows are what finds no room
    full = fill(FOR_ROOT)
    answers = [send(client, "refused")]
    stored = Dataset.objects.count()
    full.unlink()
    answers.append(send(client, "taken"))
    full = fill(FOR_ROOT)
    with suppress(OperationalError):
        while True:
            run_sql(WRITE_LOG)
    answers.append(send(client, "stopped"))
    full.unlink()
    until(lambda: send(client, "restarted").status_code == 302, "an upload taken by the restarted database")
    print(json.dumps([[answer.status_code for answer in answers], answers[0].content.decode(), stored, names()]))


def fill(folder: Path) -> Path:
    """Leave `LEFT` bytes of the folder's disk."""
    full = folder / "full"
    with full.open("wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(LEFT)) == LEFT:
                pass
        file.truncate(file.tell() - LEFT)
    return full


def run_sql(statement: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement)


def names() -> list[str]:
    from apps.datasets.models import Dataset

    return sorted(Dataset.objects.values_list("name", flat=True))


def send(client: Any, name: str) -> Any:
    """Upload a dataset whose rows take more than the room that is left, as a request of its own."""
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.db import close_old_connections

    close_old_connections()  # as each request does; Django's test client leaves it out
    judged = [{"doc_ref": {"document_id": "d"}, "relevance_grade": 1}]
    texts = [os.urandom(2000).hex() for _ in range(1000)]
    queries = [{"query_key": f"q{n}", "query_text": text, "relevant_docs": judged} for n, text in enumerate(texts)]
    fields = {"schema_version": "1.0", "metadata": {"name": name}, "queries": queries}
    file = SimpleUploadedFile(f"{name}.json", json.dumps(fields).encode())
    return client.post("/admin/datasets/dataset/add/", {"file": file, "name": name})


if __name__ == "__main__":
    main()
