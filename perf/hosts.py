"""Workers on several hosts, and what limits many of them.

First the same benchmark by 1, 2 and 4 workers on 1, 2 and 4 hosts: network namespaces, each with a mount namespace
whose /tmp is its own, so that hosts share no file but the code; PostgreSQL and Redis are reached by TCP. Every figure
must be that of one worker, to the last bit. Then 1 to 64 workers whose batches sleep: throughput against the ideal, and
the CPU time, waits and commands of a batch. Needs root and `ip`. python perf/hosts.py [hosts|workers]
"""
# mypy: no-strict-optional

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import throwaway

sys.path.insert(0, str(throwaway.ROOT))
from benchbench.embedded import find_places, places, postgres

postgres.OPTIONS |= {"listen_addresses": "*", "max_connections": "500"}  # before the servers start
throwaway.open_site()

import django_rq
from django.db import connection, connections
from django.db.models import Max, Min
from figures import hash_figures, make_library, run_benchmark

from apps.mappings.models import Mapping
from apps.operations.handlers import Handler, register_handler
from apps.operations.launching import start_operation
from apps.operations.leasing import Lease
from apps.operations.management.commands.worker import Command
from apps.operations.models import Batch, Operation
from apps.operations.queueing import find_workers

REDIS_PORT = 6399
WORKERS = (1, 4, 16, 64)
SERVICE_SECONDS = (0.1, 1.0)
OF_WORKERS = "FROM pg_stat_activity WHERE starts_with(application_name, 'benchbench worker')"
TICKS = os.sysconf("SC_CLK_TCK")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


class Host:
    """A network and a mount namespace, and the process that keeps them."""

    def __init__(self, number: int) -> None:
        self.name, self.address = f"bbhost{number}", f"10.77.{number}.1"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "address", "add", f"{self.address}/30", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        run("ip", "-n", self.name, "address", "add", f"10.77.{number}.2/30", "dev", "eth0")
        for device in ("eth0", "lo"):
            run("ip", "-n", self.name, "link", "set", device, "up")
        hide = f"mount -t tmpfs tmpfs /tmp; mkdir -p /tmp/data; mount -t tmpfs tmpfs {places.FOR_ROOT}"
        keep = f"hostname {self.name}; {hide}; echo ready; exec sleep infinity"
        command = ["ip", "netns", "exec", self.name, "unshare", "--mount", "--uts", "sh", "-ec", keep]
        self.keeper = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.keeper.stdout is not None
        assert self.keeper.stdout.readline() == "ready\n"

    def build_command(self, *command: str) -> list[str]:
        return ["nsenter", f"--target={self.keeper.pid}", "--mount", "--uts", "--net", *command]

    def sees(self, path: Path) -> bool:
        return subprocess.run(self.build_command("test", "-e", str(path)), check=False).returncode == 0

    @contextmanager
    def start_worker(self) -> Iterator[None]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH", "TMP"))} | {
            "DATABASE_URL": f"postgresql://{places.USER}@{self.address}:{places.PORT}/{places.DATABASE}",
            "REDIS_URL": f"redis://{self.address}:{REDIS_PORT}/0",
            "SECRET_KEY": "of no importance here",
            "BENCHBENCH_DATA_DIR": "/tmp/data",
            "BENCHBENCH_VECTOR_DIR": "/tmp/data/vectors",
            "BENCHBENCH_BATCH_SECONDS": "0",  # a batch for each query
            "OMP_NUM_THREADS": "1",
        }
        before = find_workers("gpu")
        command = self.build_command(sys.executable, str(throwaway.ROOT / "manage.py"), "worker", "gpu")
        worker = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
        try:
            while find_workers("gpu") == before:
                assert worker.poll() is None, worker.stderr.read()
                time.sleep(0.1)
            yield
        finally:
            worker.terminate()
            worker.wait()

    def close(self) -> None:
        self.keeper.kill()
        self.keeper.wait()
        run("ip", "netns", "delete", self.name)


def open_services() -> None:
    """Let both servers be reached from the namespaces, which have addresses of 10.77.0.0/16."""
    cluster = postgres.Postgres(find_places()).cluster
    with (cluster / "pg_hba.conf").open("a") as file:
        file.write("host all all 10.77.0.0/16 trust\n")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_reload_conf()")
    redis: Any = django_rq.get_connection("default")
    for name, value in (("protected-mode", "no"), ("bind", "*"), ("port", REDIS_PORT)):
        redis.config_set(name, value)


def compare_hosts() -> None:
    """Print what each number of hosts and workers made of one benchmark."""
    mapping, hashes, hosts = make_library(), set(), []
    try:
        hosts += [Host(number) for number in range(1, 5)]
        (hosts_file := Path("/tmp") / "of-this-host").touch()
        hidden = [find_places().data, find_places().postgres, find_places().redis_socket, hosts_file]
        assert all(path.exists() for path in hidden)
        assert not any(host.sees(path) for host in hosts for path in hidden)
        print("no host sees the folders of the servers or of another host")
        for host_count, worker_count in ((1, 1), (1, 2), (1, 4), (2, 2), (4, 4)):
            with ExitStack() as stack:
                for number in range(worker_count):
                    stack.enter_context(hosts[number % host_count].start_worker())
                benchmark = run_benchmark(mapping, f"{host_count} hosts, {worker_count} workers")
            batches = benchmark.operation.batches.all()
            owners = Counter(owner.partition(":")[0] for owner in batches.values_list("lease_owner", flat=True))
            hashes.add(figures := hash_figures(benchmark))
            print(
                f"hosts {host_count}, workers {worker_count}: figures {figures}, batches by host {dict(owners)}",
                flush=True,
            )
    finally:
        for host in hosts:
            host.close()
    assert len(hashes) == 1, "The figures differ."


class Sleeping(Handler):
    """Batches that sleep."""

    kind = Operation.Kind.RESOLVE
    subject = Mapping
    busy = "batches that sleep"
    units = "seconds"
    limit = "BENCHMARK_MAX_RESOLVING_PER_USER"

    def perform(self, batch: Batch, lease: Lease) -> None:
        time.sleep(batch.payload["seconds"])
        lease.check()
        with lease.commit():
            pass

    def finalise(self, operation: Operation) -> None:
        pass

    def stop(self, operation: Operation) -> None:
        pass

    def build_event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        return "sleeping_progress", {}


@contextmanager
def start_workers(number: int) -> Iterator[list[int]]:
    """Fork workers of this process, and yield their process ids once all have said that they live."""
    connections.close_all()
    pids = []
    for _ in range(number):
        if (pid := os.fork()) == 0:
            with suppress(BaseException):
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                Command().serve(["default"], burst=False)
            os._exit(0)
        pids.append(pid)
    try:
        while len(find_workers("default")) < number:
            time.sleep(0.1)
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        django_rq.get_connection("default").flushdb()


def count_cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes so far, and of their ended children."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def list_backends() -> list[int]:
    cluster = postgres.Postgres(find_places()).cluster
    postmaster = (cluster / "postmaster.pid").read_text().split()[0]
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [int(postmaster), *map(int, children)]


def sample_waits(waits: Counter[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(wait_event_type || ' ' || wait_event, 'CPU') {OF_WORKERS} AND state = 'active'"
        )
        waits.update(name for (name,) in cursor.fetchall())


def measure(number: int, seconds: float) -> str:
    """Return a line on workers whose batches sleep for some seconds."""
    redis: Any = django_rq.get_connection("default")
    with start_workers(number) as pids:
        count, waits = min(400, max(20, int(number * 6 / seconds))), Counter[str]()
        before, stats = (count_cpu(pids), count_cpu(list_backends())), redis.info("commandstats")
        used = redis.info("cpu")["used_cpu_user"] + redis.info("cpu")["used_cpu_sys"]
        operation = start_operation(
            Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), batches=[({"seconds": seconds}, 1)] * count
        )
        while operation.is_active:
            time.sleep(0.2)
            sample_waits(waits)
            operation.refresh_from_db()
        cpu = [after - was for after, was in zip((count_cpu(pids), count_cpu(list_backends())), before, strict=True)]
        cpu.append(redis.info("cpu")["used_cpu_user"] + redis.info("cpu")["used_cpu_sys"] - used)
        after = redis.info("commandstats")
        calls = Counter({key[8:]: row["calls"] - stats.get(key, {"calls": 0})["calls"] for key, row in after.items()})
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) {OF_WORKERS}")
            (sessions,) = cursor.fetchone()
    times = operation.batches.aggregate(first=Min("started_at"), last=Max("finished_at"))
    rate = count / (times["last"] - times["first"]).total_seconds()
    per_batch = ", ".join(f"{1000 * one / count:.1f}" for one in cpu)
    most = ", ".join(f"{name} {times / count:.0f}" for name, times in calls.most_common(4))
    asleep = ", ".join(f"{name} {share}" for name, share in waits.most_common(3)) or "none"
    return (
        f"{seconds:.1f} s x {number:2} workers: {rate:6.1f} of {number / seconds:5.0f} batches/s "
        f"({rate * seconds / number:4.0%}); CPU ms a batch of workers, PostgreSQL, Redis: {per_batch}; "
        f"{sum(calls.values()) / count:.0f} Redis commands a batch ({most}); {sessions} sessions; active: {asleep}"
    )


def main() -> None:
    if os.geteuid() or not shutil.which("ip") or not shutil.which("nsenter"):
        sys.exit("This script needs root and the programs `ip` and `nsenter` for its network namespaces.")
    parts = sys.argv[1:] or ["hosts", "workers"]
    if "hosts" in parts:
        open_services()
        compare_hosts()
    if "workers" in parts:
        register_handler(Sleeping())
        for seconds in SERVICE_SECONDS:
            for number in WORKERS:
                print(measure(number, seconds), flush=True)


if __name__ == "__main__":
    main()
