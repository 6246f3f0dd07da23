import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kit import SETTINGS, Crew, make_nursery

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("faults")


@pytest.fixture(scope="session")
def nursery(django_db_setup: None) -> Iterator["subprocess.Popen[bytes]"]:
    with make_nursery() as process:
        yield process


@pytest.fixture(autouse=True)
def short(settings: Any) -> None:
    for name, value in SETTINGS.items():
        setattr(settings, name, value)


@pytest.fixture
def crew(transactional_db: None, nursery: "subprocess.Popen[bytes]", tmp_path: Path) -> Iterator[Crew]:
    """Starts workers; those of a test end with it."""
    crew = Crew(nursery, tmp_path)
    yield crew
    crew.dismiss()
