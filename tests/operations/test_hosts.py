import threading
import time

from apps.operations.hosts import share_of_host


def hold(log: list[str], name: str, *, alone: bool, seconds: float) -> threading.Thread:
    def act() -> None:
        with share_of_host(alone=alone, wait=lambda _: time.sleep(0.01)):
            log.append(f"{name} in")
            time.sleep(seconds)
            log.append(f"{name} out")

    thread = threading.Thread(target=act)
    thread.start()
    time.sleep(0.1)
    return thread


def test_batches_share_a_host_unless_one_must_be_alone() -> None:
    log: list[str] = []
    threads = [
        hold(log, "a", alone=False, seconds=0.4),
        hold(log, "b", alone=False, seconds=0.2),
        hold(log, "timed", alone=True, seconds=0.2),
        hold(log, "late", alone=False, seconds=0.0),  # comes while the timed one waits, and lets it go first
    ]
    for thread in threads:
        thread.join()
    assert log == ["a in", "b in", "b out", "a out", "timed in", "timed out", "late in", "late out"]
