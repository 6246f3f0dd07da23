"""Operations to watch, and work to do while they are watched."""

import uuid
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection

from apps.collections.models import Collection
from apps.operations.launching import start_operation
from apps.operations.models import Operation

ALL = "/ws/operations"


def start(owner: User | None = None) -> Operation:
    subject = Collection.objects.create(name=uuid.uuid4().hex, owner=owner)
    return start_operation(
        Operation.Kind.RESOLVE, subject_id=subject.pk, by=owner, batches=[({"number": 1}, 1), ({"number": 2}, 1)]
    )


def path_of(operation: Operation) -> str:
    return f"{ALL}/{operation.pk}"


async def aside(work: Callable[..., Any], *arguments: Any) -> None:
    """Do the work in a thread, and close its connection to the database."""

    def finished() -> None:
        work(*arguments)
        connection.close()

    await sync_to_async(finished, thread_sensitive=False)()
