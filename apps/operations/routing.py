from django.urls import re_path

from apps.operations.consumers import OperationConsumer, OperationsConsumer

websocket_urlpatterns = [
    re_path(r"^ws/operations/?$", OperationsConsumer.as_asgi()),
    re_path(r"^ws/operations/(?P<operation_id>[0-9a-f-]{36})/?$", OperationConsumer.as_asgi()),
]
