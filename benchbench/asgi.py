"""HTTP through Django, WebSockets through Channels."""

import os
import warnings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

from benchbench import embedded

embedded.ensure()
# Without `collectstatic` the folder is absent and files come from the packages that hold them: not worth a warning.
warnings.filterwarnings("ignore", message="No directory at")
django_application = get_asgi_application()

from apps.operations.routing import websocket_urlpatterns  # needs the app registry that the line above fills

application = ProtocolTypeRouter(
    {"http": django_application, "websocket": AuthMiddlewareStack(URLRouter(websocket_urlpatterns))}
)
