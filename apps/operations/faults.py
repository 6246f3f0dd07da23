"""Tracebacks of errors, kept with the batch, so that a reader of the error finds where it came from."""

import sys
import traceback
from collections.abc import Iterable

from django.conf import settings

from apps.operations.models import Batch

KEY = "tracebacks"  # of a batch's result
MOST = 20  # of one batch
LONGEST = 20_000  # characters: those of the last frames


class Faults(dict[str, str]):
    """Tracebacks by the message of their error, the first of each, at most MOST."""

    def add(self, message: str, error: BaseException) -> None:
        if len(self) < MOST:
            self.setdefault(message.replace("\0", ""), traceback_of(error))

    def as_result(self) -> dict[str, dict[str, str]]:
        """Return what of a batch's result they are: nothing where nothing failed."""
        return {KEY: dict(self)} if self else {}


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error, with paths as they are inside the project and its libraries."""
    told = "".join(traceback.format_exception(error)).replace("\0", "")
    for folder in (str(settings.BASE_DIR), sys.prefix, sys.base_prefix):
        told = told.replace(f"{folder}/", "")
    return told[-LONGEST:]


def tracebacks_of(subject_ids: Iterable[object]) -> dict[str, str]:
    """Return the tracebacks of all work on these subjects, by the message of the error, the latest of each."""
    batches = Batch.objects.filter(operation__subject_id__in=set(subject_ids), result__has_key=KEY).order_by("pk")
    tracebacks: dict[str, str] = {}
    for told in batches.values_list(f"result__{KEY}", flat=True):
        tracebacks |= told
    return tracebacks
