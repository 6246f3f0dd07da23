"""Quotas: how much work of one user may be active."""

from django.conf import settings
from django.contrib.auth.models import User

from apps.operations.models import Operation, Status
from benchbench.database.rereading import read_again
from benchbench.errors import ConflictError

# What is counted of each kind, and the setting that says how many of it one user may have started.
QUOTAS = {
    Operation.Kind.BENCHMARK: ("benchmarks running", "BENCHMARK_MAX_RUNNING_PER_USER"),
    Operation.Kind.INDEX: ("indexes being built", "BENCHMARK_MAX_INDEXING_PER_USER"),
    Operation.Kind.RESOLVE: ("mappings being resolved", "BENCHMARK_MAX_RESOLVING_PER_USER"),
    Operation.Kind.LLM_JUDGING: ("rounds being judged by a model", "BENCHMARK_MAX_LLM_JUDGING_PER_USER"),
    Operation.Kind.MEASURE: ("benchmarks being measured again", "BENCHMARK_MAX_MEASURING_PER_USER"),
}


class QuotaError(ConflictError):
    """The user has as much under way as one user may."""

    code = "quota"


def require_room(user: User | None, kind: Operation.Kind) -> None:
    """Raise QuotaError where `user` started as many operations of the kind, still active, as one may.

    A command without an owner has no limit, nor has a kind without a quota. Call it in the transaction that starts
    another: the lock on the user makes two starts at once count each other.
    """
    if user is None or kind not in QUOTAS:
        return
    what, setting = QUOTAS[kind]
    read_again(User.objects.select_for_update(no_key=True), user.pk)
    most = getattr(settings, setting)
    active = Operation.objects.filter(started_by=user, kind=kind, status__in=Status.active()).count()
    if active >= most:
        raise QuotaError(
            f"{user.get_username()} has {active} {what}, and {most} is the most for one user ({setting}): wait for one "
            "to end, or cancel one."
        )
