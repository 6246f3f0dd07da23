"""nginx as Docker Compose starts it, before a site of the test."""

from tests.client.site import ada, token  # noqa: F401 (fixtures)
from tests.proxy.nginx import proxy  # noqa: F401 (a fixture)
