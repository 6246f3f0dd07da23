"""A throw-away site for the scripts of this folder: embedded services with a data folder that goes at the end."""

import atexit
import os
import platform
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def remove_later(folder: str) -> None:
    """Remove the data folder once this process, which holds the services, is gone."""
    remove = f"while kill -0 {os.getpid()} 2>&-; do sleep 0.2; done; {sys.executable} -m benchbench.embedded remove"
    subprocess.Popen(["sh", "-c", f"{remove}; rm -rf {folder}"], cwd=ROOT, start_new_session=True)


@cache
def open_site() -> None:
    """Start services on an empty data folder, migrate, and tell the machine in one line; once in a process."""
    sys.path.insert(0, str(ROOT))
    folder = tempfile.mkdtemp(prefix="benchbench-perf-")
    for name in ("DATABASE_URL", "REDIS_URL", "BENCHBENCH_VECTOR_DIR"):
        os.environ.pop(name, None)
    os.environ |= {
        "BENCHBENCH_DATA_DIR": folder,
        "DJANGO_SETTINGS_MODULE": "benchbench.settings",
        "HF_HUB_OFFLINE": "1",
    }

    from benchbench import embedded

    embedded.ensure()

    atexit.register(remove_later, folder)

    import django

    django.setup()

    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
