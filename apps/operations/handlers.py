"""Handlers of the kinds of operations, which the rooms register, and the tracebacks stored with a batch."""

import sys
import traceback
from collections.abc import Iterable
from typing import ClassVar, Protocol

from django.conf import settings

from apps.operations.leasing import Lease
from apps.operations.models import SUBJECTS, Batch, BatchSpec, Operation, Status
from benchbench.errors import LONGEST
from benchbench.models import OwnedModel
from benchbench.texts.storable import clean_text


class Handler(Protocol):
    """The work of one kind of operation, on subjects of one model.

    `busy` names several of its subjects at work in a sentence: "indexes being built"; `units` what its progress counts:
    "rankings", or "" if units of several kinds do. The setting `limit` is the most active operations of a user.
    """

    kind: ClassVar[Operation.Kind]
    subject: ClassVar[type[OwnedModel]]
    busy: ClassVar[str]
    units: ClassVar[str]
    limit: ClassVar[str]

    def perform(self, batch: Batch, lease: Lease) -> None:
        """Do the batch, calling `lease.check()` between parts, and store the result inside `with lease.commit(…)`.

        It may run twice: rows written before a crash must not count twice.
        """

    def list_last_batches(self, operation: Operation) -> Iterable[BatchSpec]:
        """Return batches (payload, units) to do before the end; asked, under a lock, each time all others are done."""
        return ()

    def finalise(self, operation: Operation) -> None:
        """Conclude once every batch is done, within the transaction that completes the operation."""

    def stop(self, operation: Operation) -> None:
        """Update the subject of a failed or cancelled operation, within the transaction that ends it."""

    def tidy(self) -> None:
        """Clean up after ended operations, at each sweep. Must not wait for locks."""
        return None

    def find_stage(self, operation: Operation) -> str:
        """Return what the operation is at, as in its events: "encoding"."""
        return "starting" if operation.status == Status.PENDING else operation.status

    def describe_units(self, operation: Operation) -> str:
        """Return further units of a running operation: "reranking 3,200 of at most 18,000 pairs"; "" without."""
        return ""

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        """Return the event type and its data: the whole progress stored in the database."""

    def list_completions(self, operation: Operation, after: int) -> list[tuple[int, dict[str, object]]]:
        """Return the parts that finished past ordinal `after`, by ordinal, each with the fields its event overrides.

        Watchers receive each part once and in order, before the end of the operation.
        """
        return []


HANDLERS: dict[str, Handler] = {}  # by kind


def register_handler(handler: Handler) -> None:
    """Let workers do the operations of a kind. Call it in the `AppConfig.ready` of the room of their subjects."""
    HANDLERS[handler.kind] = handler
    SUBJECTS[handler.kind] = handler.subject


def find_handler(operation: Operation) -> Handler:
    return HANDLERS[operation.kind]


KEY = "tracebacks"  # in a batch's result
MAX_TRACEBACKS = 20  # per batch
MAX_CHARACTERS = 20_000  # characters: the last frames are kept


class Faults(dict[str, str]):
    """Tracebacks by error message: the first of each message, at most MAX_TRACEBACKS."""

    def add(self, message: str, error: BaseException) -> None:
        if len(self) < MAX_TRACEBACKS:
            self.setdefault(clean_text(message, LONGEST), render_traceback(error))

    def as_result(self) -> dict[str, dict[str, str]]:
        """Return the tracebacks as part of a batch's result; empty without errors."""
        return {KEY: dict(self)} if self else {}


def render_traceback(error: BaseException) -> str:
    """Return the traceback of an error, with paths relative to the project and the Python installation."""
    text = "".join(traceback.format_exception(error))[-2 * MAX_CHARACTERS :]
    for folder in (str(settings.BASE_DIR), sys.prefix, sys.base_prefix):
        text = text.replace(f"{folder}/", "")
    return clean_text(text[-MAX_CHARACTERS:], MAX_CHARACTERS)


def load_tracebacks(subject_ids: Iterable[object]) -> dict[str, str]:
    """Return the tracebacks of all operations on these subjects by error message, the latest of each."""
    batches = Batch.objects.filter(operation__subject_id__in=set(subject_ids), result__has_key=KEY).order_by("pk")
    tracebacks: dict[str, str] = {}
    for batch_tracebacks in batches.values_list(f"result__{KEY}", flat=True):
        tracebacks |= batch_tracebacks
    return tracebacks
