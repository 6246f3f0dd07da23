"""A process that has imported the site, and forks a worker whenever it reads what to start: to import takes seconds.

`python -m tests.faults.nursery` reads objects of JSON, a line each: `settings` of the worker, its `queues` and its
`fault`. It answers with the worker's id, which is that of its group and session too. An object with an `act` starts a
process that does it and ends.
"""

import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
from pathlib import Path
from typing import Any

import django

PR_SET_PDEATHSIG = 1


def main() -> None:
    django.setup()
    import torch  # noqa: F401  (ten seconds of a busy machine, which no worker's first batch shall need)

    import apps

    for module in pkgutil.walk_packages(apps.__path__, "apps."):
        if not module.name.endswith((".__main__", ".openid")):  # the latter only where single sign-on is configured
            importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one asks how they ended
    print("ready", flush=True)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            answer = json.loads(line)
            (act if "act" in answer else work)(answer)
        print(pid, flush=True)


def act(requested: dict[str, Any]) -> None:
    """Do one act of a person, as a web process would."""
    from tests.faults import acts

    os.dup2(2, 1)
    try:
        acts.act(requested["act"], requested["number"], Path(requested["told"]))
    finally:
        os._exit(0)


def work(requested: dict[str, Any]) -> None:
    """Be a worker, in a session of its own, until it ends."""
    from django.conf import settings
    from django.core.management import call_command

    import tests.faults.outages  # noqa: F401 (its actions)
    from apps.operations.workers import watchdog
    from apps.retrieval.stores import sharing
    from tests.faults.planting import Fault

    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # even a frozen one outlives no broken-off test run
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # what it says is not an answer
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for name, value in requested["settings"].items():
        setattr(settings, name, Path(value) if name.endswith("_DIR") else value)
    watchdog.GRACE_SECONDS = sharing.WAIT_SECONDS = 1.0
    if requested["fault"]:
        Fault(**requested["fault"]).plant()
    code = 1
    try:
        call_command("worker", *requested["queues"])
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
