"""Deletions into the bin, and the tables that it has."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.accounts.bin import keep_deleted
from apps.accounts.models import Deletion
from benchbench.deleting import delete_unused


def list_bin_tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, 'bin_')")
        return [name for (name,) in cursor.fetchall()]


def count_in_bin() -> int:
    statements = [f'SELECT count(*) FROM "{name}"' for name in list_bin_tables()]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(["SELECT 0", *statements]))
        return sum(count for (count,) in cursor.fetchall())


@pytest.fixture
def empty_bin(db: None) -> None:
    """Delete what tests that committed left in the bin."""
    with connection.cursor() as cursor:
        for name in list_bin_tables():
            cursor.execute(f'DROP TABLE "{name}"')


def delete_by_page(row: Model) -> None:
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_delete", args=[row.pk])
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    answer = client.post(address, {"post": "yes", "name": str(row)}, follow=True)
    assert "Undo" in answer.content.decode()


def delete_and_keep(row: Any, *, by: User | None = None) -> Deletion:
    with keep_deleted(row, by) as deletion:
        delete_unused(row)
    return deletion
