"""Addresses of the sockets."""

from django.urls import path, re_path

import benchbench.site.addresses  # noqa: F401 - <id:…>
from apps.operations.sockets.consumers import HintsConsumer, NowhereConsumer, OperationConsumer, OperationsConsumer

websocket_urlpatterns = [
    path(f"ws/operations{rest}", consumer.as_asgi())
    for consumer, tail in (
        (OperationsConsumer, ""),
        (OperationConsumer, "/<id:operation_id>"),
        (HintsConsumer, "/<id:operation_id>/hints"),
    )
    for rest in (tail, f"{tail}/")
] + [re_path("", NowhereConsumer.as_asgi())]
