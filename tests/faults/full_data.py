"""A site whose embedded database has no room: sends it a dataset, then another once there is, and prints the answers.

`python -m tests.faults.small_disk FOLDER BYTES -m tests.faults.full_data`, with the FOLDER in which root's part of data
folders lies.
"""

import json
import os
from typing import Any

import django

from benchbench.embedded.places import FOR_ROOT

LEFT = 2**20


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
    full = FOR_ROOT / "full"
    state = os.statvfs(full.parent)
    full.write_bytes(bytes(state.f_bavail * state.f_frsize - LEFT))
    refused = send(client, "refused")
    stored = Dataset.objects.count()
    full.unlink()
    taken = send(client, "taken")
    print(
        json.dumps([refused.status_code, refused.content.decode(), stored, taken.status_code, Dataset.objects.count()])
    )


def send(client: Any, name: str) -> Any:
    """Upload a dataset whose rows take more than the room that is left."""
    from django.core.files.uploadedfile import SimpleUploadedFile

    judged = [{"doc_ref": {"document_id": "d"}, "relevance_grade": 1}]
    texts = [os.urandom(2000).hex() for _ in range(1000)]
    queries = [{"query_key": f"q{n}", "query_text": text, "relevant_docs": judged} for n, text in enumerate(texts)]
    fields = {"schema_version": "1.0", "metadata": {"name": name}, "queries": queries}
    file = SimpleUploadedFile(f"{name}.json", json.dumps(fields).encode())
    return client.post("/admin/datasets/dataset/add/", {"file": file, "name": name})


if __name__ == "__main__":
    main()
