import pytest

from apps.mappings.models import Mapping
from tests.api.callers import Callers
from tests.library import make_library
from tests.staff import MakeStaff


@pytest.fixture
def callers(make_staff: MakeStaff) -> Callers:
    return Callers(make_staff)


@pytest.fixture
def library(db: None) -> Mapping:
    return make_library(documents=6, queries=2)
