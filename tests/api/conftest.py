import pytest

from apps.mappings.models import Mapping
from tests.admin.conftest import MakeStaff, make_staff  # noqa: F401 (a fixture)
from tests.api.callers import Callers
from tests.benchmarks.conftest import make_library


@pytest.fixture
def callers(make_staff: MakeStaff) -> Callers:  # noqa: F811
    return Callers(make_staff)


@pytest.fixture
def library(db: None) -> Mapping:
    return make_library(documents=6, queries=2)
