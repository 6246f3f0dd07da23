"""HTTP through Django, WebSockets through Channels."""

import os
import warnings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")
# Before NumPy is imported. A request's products are small, and threads that spin beside other requests and workers make
# them many times slower than one alone.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Opening a connection to PostgreSQL for each request costs more than what most requests ask of it.
os.environ.setdefault("DATABASE_POOL", "20")

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

from benchbench import embedded
from benchbench.site.closing import allow_every_code

embedded.ensure()
allow_every_code()
# Without `collectstatic` the folder is absent and files come from the packages that hold them: not worth a warning.
warnings.filterwarnings("ignore", message="No directory at")
django_application = get_asgi_application()

# These need the app registry that the line above fills.
from apps.api.access.sockets import identified
from apps.operations.sockets.routing import websocket_urlpatterns

application = ProtocolTypeRouter(
    {"http": django_application, "websocket": identified(URLRouter(websocket_urlpatterns))}
)
