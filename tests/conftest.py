"""What every test stands on: the embedded services, and the data that lies beside the checkout."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.db import connection

from benchbench import embedded

os.environ["HF_HUB_OFFLINE"] = "1"  # a test that would fetch a model fails at once
embedded.ensure()

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def empty_redis() -> Iterator[None]:
    """Leave no job, cached answer or throttle count of one test to the next."""
    yield
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.flushall()


@pytest.fixture
def shared_data() -> Path:
    """The folder of the test collections: `../shared/data`, or the one BENCHBENCH_SHARED_DATA names."""
    folder = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(
            f"There is no {folder}: put the test collections there, or name their folder in BENCHBENCH_SHARED_DATA."
        )
    return folder


@pytest.fixture
def process_environment(transactional_db: None) -> dict[str, str]:
    """The environment of a process (a worker, a server) that is to work on this test's database and Redis."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        "DATABASE_URL": embedded.database_url(str(connection.settings_dict["NAME"])),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
    }
