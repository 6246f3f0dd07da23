"""A queue whose jobs a thread of each worker performs, so that they hold up neither batches nor quick jobs."""

import logging

import django_rq
from redis.exceptions import RedisError
from rq import Queue
from rq.serializers import JSONSerializer

from apps.operations.workers.jobs import OwnJob
from benchbench.database.tables import explain_waiting

log = logging.getLogger(__name__)


def work_aside(queue_name: str) -> None:
    """Perform the jobs of a queue until it is empty. A job that fails is logged and removed: its row is still due."""
    queue = django_rq.get_queue(queue_name)
    while not explain_waiting():
        dequeued = Queue.dequeue_any(
            [queue], None, connection=queue.connection, job_class=OwnJob, serializer=JSONSerializer
        )
        if dequeued is None:
            return
        job, _ = dequeued
        try:
            job.func(*job.args)
        except RedisError:
            raise
        except Exception:
            log.exception("The job %s failed; the next sweep enqueues it again.", job.func_name)
        finally:
            job.delete()
