from django.apps import AppConfig
from django.core.signals import got_request_exception

from benchbench.process import watch_calls


class OperationsConfig(AppConfig):
    name = "apps.operations"
    verbose_name = "Operations"

    def ready(self) -> None:
        from apps.operations import checks  # noqa: F401  (registers the system checks)
        from apps.operations.workers import watchdog
        from apps.operations.workers.jobs import register_job
        from apps.operations.working import work_batch

        register_job(work_batch)
        watch_calls(watchdog.calling)
        got_request_exception.connect(_count_server_error, dispatch_uid="count_server_error")


def _count_server_error(**_: object) -> None:
    from apps.operations.metrics import count  # imported here because RQ needs the settings

    count({("benchbench_server_errors",): 1})
