import pytest

from tests.admin.conftest import MakeStaff, make_staff  # noqa: F401 (a fixture)
from tests.api.callers import Callers


@pytest.fixture
def callers(make_staff: MakeStaff) -> Callers:  # noqa: F811
    return Callers(make_staff)
