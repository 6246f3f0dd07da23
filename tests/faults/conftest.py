import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.kit import SETTINGS, Crew, make_nursery
from tests.faults.table import write_table
from tests.proxy.nginx import proxy  # noqa: F401 (a fixture)

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all of this room to `make faults`."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("faults")


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Write the table, where all of the suite was run and nothing failed."""
    is_whole = "BENCHBENCH_WRITE_FAULTS" in os.environ and not terminalreporter.config.option.keyword
    if is_whole and exitstatus == pytest.ExitCode.OK:
        write_table(report for reports in terminalreporter.stats.values() for report in reports)


@pytest.fixture(scope="session")
def nursery(django_db_setup: None) -> Iterator["subprocess.Popen[bytes]"]:
    with make_nursery() as process:
        yield process


@pytest.fixture(autouse=True)
def short(settings: Any) -> None:
    for name, value in SETTINGS.items():
        setattr(settings, name, value)


@pytest.fixture
def crew(
    transactional_db: None,
    nursery: "subprocess.Popen[bytes]",
    tmp_path: Path,
    request: pytest.FixtureRequest,
    record_property: Any,
) -> Iterator[Crew]:
    """Starts workers; those of a test end with it."""
    crew = Crew(nursery, tmp_path, *family_of(request))
    yield crew
    crew.dismiss()
    record_property("family", (crew.family, crew.expected_seconds, crew.slowest))


def family_of(request: pytest.FixtureRequest) -> tuple[str, float]:
    """Return the row of the table that a test counts in, and the seconds that it states: its own, or its module's."""
    if "family" in request.fixturenames:
        family, declared = request.getfixturevalue("family")
        return family, declared
    return (request.module.__doc__ or "").splitlines()[0].rstrip("."), request.module.STATED_SECONDS
