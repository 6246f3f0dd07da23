from django.urls import path

from apps.operations.consumers import OperationConsumer, OperationsConsumer

websocket_urlpatterns = [
    path(f"ws/operations{rest}", consumer.as_asgi())
    for consumer, tail in ((OperationsConsumer, ""), (OperationConsumer, "/<uuid:operation_id>"))
    for rest in (tail, f"{tail}/")
]
