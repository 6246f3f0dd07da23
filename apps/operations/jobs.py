"""Jobs of RQ: batches and nothing else."""

from collections.abc import Callable
from typing import Any

from rq.job import Job

JOB = "apps.operations.tasks.work_batch"


class ForeignJobError(Exception):
    """A job that BenchBench did not make."""


class BatchJob(Job):
    """A job that does a batch. RQ would import and call whatever a job in Redis names: this one calls `JOB` alone."""

    @property
    def func(self) -> Callable[..., Any]:
        if self.func_name != JOB or self.instance is not None:
            raise ForeignJobError(f"{self.func_name} is no job of BenchBench: it is not run. Who writes to this Redis?")
        called: Callable[..., Any] = super().func
        return called

    @property
    def success_callback(self) -> None:
        """None: no job of ours has one."""

    @property
    def failure_callback(self) -> None:
        """None, as above."""

    @property
    def stopped_callback(self) -> None:
        """None, as above."""
