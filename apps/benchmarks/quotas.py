"""How much one user may have under way."""

from django.conf import settings
from django.contrib.auth.models import User

from apps.operations.models import Operation, Status
from benchbench.errors import ConflictError


class QuotaError(ConflictError):
    """The user has as much under way as one user may."""

    code = "quota"


def require_room(user: User | None) -> None:
    """Raise QuotaError where `user` runs as many benchmarks as one may; a command without an owner has no limit.

    Call it in the transaction that starts another: the lock on the user makes two starts at once count each other.
    """
    if user is None:
        return
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    most = settings.BENCHMARK_MAX_RUNNING_PER_USER
    running = Operation.objects.filter(owner=user, kind=Operation.Kind.BENCHMARK, status__in=Status.active()).count()
    if running >= most:
        raise QuotaError(
            f"{user.get_username()} has {running} benchmarks running, and at most {most} may "
            "(BENCHMARK_MAX_RUNNING_PER_USER): wait for one to end, or cancel one."
        )
