"""What a worker finds on its queues, and what of that it runs."""

import pickle
from pathlib import Path

import django_rq
import pytest
from rq import Callback, Queue
from rq.serializers import DefaultSerializer

from apps.operations.management.commands.worker import Command


class Touching:
    """Unpickled it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(self.path),)  # type: ignore[return-value]


@pytest.fixture
def queue(transactional_db: None) -> Queue:
    queue = django_rq.get_queue("default")
    queue.empty()
    return queue


def work() -> None:
    Command().serve(["default"], burst=True)


def test_it_runs_no_function_that_somebody_else_names(queue: Queue, tmp_path: Path) -> None:
    job = queue.enqueue("os.mkdir", str(tmp_path / "made"), on_failure=Callback("os.getcwd"))
    assert job
    work()
    assert not (tmp_path / "made").exists()
    job.refresh()
    assert job.get_status() == "failed"
    assert "os.mkdir is no job of BenchBench" in str(job.latest_result().exc_string)


def test_it_unpickles_nothing(queue: Queue, tmp_path: Path) -> None:
    pickled = Queue("default", connection=queue.connection, serializer=DefaultSerializer)
    touching = Touching(str(tmp_path / "touched"))
    pickle.loads(pickle.dumps(touching))
    assert (tmp_path / "touched").exists(), "that is how one is hurt"
    (tmp_path / "touched").unlink()
    pickled.enqueue("apps.operations.working.work_batch", touching)
    work()
    assert not (tmp_path / "touched").exists()
