"""Subjects of operations: whoever may see a subject sees every operation on it.

Operations store no owner, so that a subject which changes hands takes them along, sockets that are open included.
"""

from typing import Any

from django.apps import apps
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.operations.models import Operation
from benchbench.access import visible
from benchbench.models import OwnedModel

# By the names of Django's registry: this app knows no other.
SUBJECTS: dict[str, str] = {
    Operation.Kind.INDEX: "retrieval.Index",
    Operation.Kind.RESOLVE: "mappings.Mapping",
    Operation.Kind.BENCHMARK: "benchmarks.Benchmark",
    Operation.Kind.LLM_JUDGING: "judging.Round",
    Operation.Kind.MEASURE: "benchmarks.Benchmark",
}


def subject_of(operation: Operation) -> OwnedModel | None:
    """Return what the operation works on, or None once that is deleted."""
    return _rows(SUBJECTS[operation.kind]).filter(pk=operation.subject_id).first()


def owner_id_of(operation: Operation) -> int | None:
    """Return whose the subject is; None where it is the whole staff's, or deleted."""
    subject = subject_of(operation)
    return subject.owner_id if subject else None


def of_subject(field: str) -> Coalesce:
    """Return an expression for lists of operations: a field of the subject of each, NULL where that is deleted."""
    names = dict.fromkeys(SUBJECTS.values())
    return Coalesce(*(Subquery(_rows(name).filter(pk=OuterRef("subject_id")).values(field)) for name in names))


def subject_seen_by(user: Any, prefix: str) -> Q:
    """Return the operations whose subject `user` sees; one whose subject is deleted is seen by who started it."""
    seen = Q(pk__in=[])
    for kind, name in SUBJECTS.items():
        subject = _rows(name).filter(pk=OuterRef(f"{prefix}subject_id"))
        theirs = Q(Exists(visible(subject, user))) | Q(~Exists(subject), **{f"{prefix}started_by": user})
        seen |= Q(theirs, **{f"{prefix}kind": kind})
    return seen


def _rows(name: str) -> QuerySet[Any]:
    return apps.get_model(name)._default_manager.all()
