"""HTTP through Django, WebSockets through Channels."""

import os
import warnings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")
# Set this before NumPy is imported. A request's matrix products are small. Several BLAS threads that compete with other
# requests and workers make them many times slower than one thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Opening a connection to PostgreSQL for each request costs more than most requests' own queries.
os.environ.setdefault("DATABASE_POOL", "20")

from channels.routing import ProtocolTypeRouter, URLRouter
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

from benchbench import embedded
from benchbench.process import collect_less


def close(protocol: WebSocketProtocol, code: int | None = None) -> None:
    """Close a WebSocket with any code of the protocol, by the function with which daphne sends 1011.

    autobahn, which daphne uses, lets applications send only 1000 and 3000 to 4999. Any other code raises, and the
    client gets 1011. RFC 6455 defines 1008 (policy violation) for a refusal, and other servers send it.
    """
    protocol.sendCloseFrame(code=1000 if code is None else code, isReply=False)


collect_less()
embedded.ensure()
WebSocketProtocol.serverClose = close
# Without `collectstatic` the folder is absent and files come from their packages. This needs no warning.
warnings.filterwarnings("ignore", message="No directory at")
django_application = get_asgi_application()

# These need the app registry that the line above fills.
import benchbench.site.addresses  # noqa: F401 - <id:…>
from apps.api.sockets import add_identity
from apps.operations.consumers import HintsConsumer, NowhereConsumer, OperationConsumer, OperationsConsumer
from benchbench.site.requests_at_once import RequestLimit, ShortHeaders

websocket_urlpatterns = [
    path(f"ws/operations{route}", consumer.as_asgi())
    for consumer, tail in (
        (OperationsConsumer, ""),
        (OperationConsumer, "/<id:operation_id>"),
        (HintsConsumer, "/<id:operation_id>/hints"),
    )
    for route in (tail, f"{tail}/")
] + [re_path("", NowhereConsumer.as_asgi())]


def count_requests_at_once(pool: int) -> int:
    """Return the most requests to answer at once with a pool of so many connections; 0, no limit, without a pool.

    Sockets share one thread, and so one connection. One more is for what a request does after its answer.
    """
    return max(1, pool - 2) if pool else 0


application = ProtocolTypeRouter(
    {
        "http": ShortHeaders(RequestLimit(django_application, count_requests_at_once(settings.DATABASE_POOL))),
        "websocket": add_identity(URLRouter(websocket_urlpatterns)),
    }
)
