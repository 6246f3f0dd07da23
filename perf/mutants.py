"""Mutants: the code that the fault suite protects, broken in one place each, and the tests that must fail on each.

Works on a copy of the checkout in a temporary folder. Runs the tests on the code as it is, where all must pass, then
those of each mutant, and prints a line for each. Exits with 1 where a mutant survives. Run it after a change of that
code or of its tests; `tests/test_perf.py` checks that every mutant still applies.

python perf/mutants.py [--list] [--only NAME ...]

Not in the list, since they cannot matter:

- the checksum of a record's header in a pack: that of its content covers key and content, so a damaged header can only
  make records count as missing, and they are added again;
- a store filled in place after its folder was cleared: the marker is written last, others wait for the lock, and an
  open collection is never cleared.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600  # for one run of pytest; a mutant that hangs is noticed too
NOT_PASSED = re.compile(r"^(?:FAILED|ERROR) ([^\[\s]+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A file in which each text of `edits` is replaced, and the tests that fail then (pytest's ids, no parameters)."""

    name: str
    what: str
    file: str
    edits: Mapping[str, str]
    tests: Sequence[str]


class MutantError(Exception):
    """A mutant that does not apply, or tests that cannot be run."""


LEASING = "apps/operations/leasing.py"
OF_CLOCKS = "tests/operations/test_clocks.py::test_"
OF_FOLDERS = "tests/retrieval/test_stores.py::TestAFolder::test_"
OF_GROWING = "tests/retrieval/test_raptor.py::TestGrowing::test_"
OF_STRAGGLERS = "tests/operations/test_stragglers.py::test_"
OF_LEASING = "tests/operations/test_leasing.py::test_"
STORE_VALUES = (
    "store_values(\n            batch, benchmark.measures, values.query_ids, values.values_by_run, hash_of_truth, "
    "was_searched=True\n        )"
)
OF_MEASURING = "tests/benchmarks/test_measuring.py::test_"
OF_PACKS = "tests/files/test_packs.py::test_"
OF_SEALS = "tests/files/test_local_files.py::test_"

MUTANTS = [
    Mutant(
        "pack-checksum",
        "The checksum of a record in a pack is ignored.",
        "benchbench/local_files/packs.py",
        {"zlib.crc32(content, zlib.crc32(key)) == HEADER.unpack_from(record)[3]": "True"},
        [OF_PACKS + "damaged_record_is_missing_and_can_be_added_again"],
    ),
    Mutant(
        "sealed-checksum",
        "The checksum of a sealed file is ignored.",
        "benchbench/local_files/sealed.py",
        {
            "return opened.read(SEAL_BYTES) == _seal(dtype, shape, holds, checksum)": "expected = _seal(dtype, shape, "
            "holds, 0)\n        return opened.read(SEAL_BYTES).split(b'crc32')[0] == expected.split(b'crc32')[0]"
        },
        [OF_SEALS + "damaged_file_is_rebuilt"],
    ),
    Mutant(
        "commit-lost",
        "A commit does not see that its lease was lost while it stored.",
        LEASING,
        {"            if not ended:\n                raise Stopped\n": ""},
        [OF_LEASING + "commit_rolls_back_if_the_batch_is_taken_over"],
    ),
    Mutant(
        "holding-lost",
        "What is stored before the end does not see that the lease was lost before.",
        LEASING,
        {"            if not self.find_work().exists():\n                raise Stopped\n": ""},
        [OF_LEASING + "superseded_attempt_stores_nothing"],
    ),
    Mutant(
        "lease-attempt",
        "A lease does not see that its worker has another attempt at the batch.",
        LEASING,
        {"            attempts=self.batch.attempts,\n": ""},
        [OF_LEASING + "superseded_attempt_stores_nothing"],
    ),
    Mutant(
        "commit-both",
        "A straggler and its backup may store at once.",
        LEASING,
        {"                _lock_work(self.batch)\n": "                pass\n"},
        [OF_STRAGGLERS + "of_two_commits_at_once_the_second_stores_nothing"],
    ),
    Mutant(
        "backup-owns",
        "A backup ends the attempt of the worker that has the lease.",
        LEASING,
        {"self.find_work().filter(lease_owner=self.batch.lease_owner)": "self.find_work()"},
        [OF_STRAGGLERS + "failing_backup_costs_no_attempt"],
    ),
    Mutant(
        "claim-leases",
        "A batch can be claimed that another worker has leased.",
        LEASING,
        {"Q(state=Batch.State.RUNNING, lease_until__lt=Now())": "Q(state=Batch.State.RUNNING)"},
        [OF_CLOCKS + "leases_use_the_database_clock"],
    ),
    Mutant(
        "claim-attempts",
        "A batch can be claimed however often it was tried.",
        LEASING,
        {"attempts__lt=settings.BENCHBENCH_MAX_ATTEMPTS, ": ""},
        [OF_CLOCKS + "leases_use_the_database_clock"],
    ),
    Mutant(
        "lease-clock",
        "A lease ends by the worker's clock.",
        LEASING,
        {"return Now() + timedelta(": "from django.utils import timezone\n\n    return timezone.now() + timedelta("},
        [OF_CLOCKS + "leases_use_the_database_clock"],
    ),
    Mutant(
        "claim-clock",
        "Whether a lease has run out is seen by the worker's clock.",
        LEASING,
        {
            "    free = Q(state=Batch.State.PENDING) | Q(state=Batch.State.RUNNING, lease_until__lt=Now())": "    from "
            "django.utils import timezone\n\n    free = Q(state=Batch.State.PENDING) | Q(state=Batch.State.RUNNING, "
            "lease_until__lt=timezone.now())"
        },
        [OF_CLOCKS + "leases_use_the_database_clock"],
    ),
    Mutant(
        "sweep-clock",
        "Whether the last attempt is lost is seen by the worker's clock.",
        "apps/operations/ending.py",
        {
            "    expired = operation": "    from django.utils import timezone\n\n    expired = operation",
            "lease_until__lt=Now()": "lease_until__lt=timezone.now()",
        },
        [OF_CLOCKS + "leases_use_the_database_clock"],
    ),
    Mutant(
        "conclude-waits",
        "An operation is concluded without being held, so that the sweep waits for whoever holds it.",
        "apps/operations/ending.py",
        {"if not _lock_operation(operation) or undone.first():": "if undone.first():"},
        [OF_LEASING + "conclude_does_not_wait_for_a_locked_operation"],
    ),
    Mutant(
        "values-before",
        "Measured values are stored before the commit of their batch.",
        "apps/benchmarks/running/execution.py",
        {
            "    with lease.commit({": f"    {STORE_VALUES}\n    with lease.commit({{",
            f"        {STORE_VALUES}\n": "",
        },
        [OF_MEASURING + "attempt_failing_during_commit_leaves_no_values"],
    ),
    Mutant(
        "values-after",
        "Measured values are stored after the commit of their batch.",
        "apps/benchmarks/running/execution.py",
        {
            f"        {STORE_VALUES}\n": "",
            "(benchmark), lists)\n": f"(benchmark), lists)\n    {STORE_VALUES}\n",
        },
        [OF_MEASURING + "attempt_failing_during_commit_leaves_no_values"],
    ),
    Mutant(
        "store-in-place",
        "A store is filled where it is searched, upon what is there.",
        "apps/retrieval/stores/filling.py",
        {
            'temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))': "temporary = folder\n"
            "    temporary.mkdir(exist_ok=True)",
            "        shutil.rmtree(folder, ignore_errors=True)\n        temporary.rename(folder)\n": "",
            "    finally:\n        shutil.rmtree(temporary, ignore_errors=True)\n": "    except BaseException:\n"
            "        shutil.rmtree(temporary, ignore_errors=True)\n        raise\n",
        },
        [OF_FOLDERS + "changed_folder_is_filled_again"],
    ),
    Mutant(
        "level-twice",
        "A level of a tree is stored again where another build has stored it meanwhile.",
        "apps/retrieval/growing.py",
        {"if not is_stored and not _has_level(locked, level):": "if not is_stored:"},
        [OF_GROWING + "first_of_two_concurrent_growers_stores_a_level"],
    ),
    Mutant(
        "sweep-transactions",
        "The sweep does not end transactions of attempts that lost their leases.",
        "apps/operations/ending.py",
        {"    end_lost_sessions()\n": ""},
        [OF_CLOCKS + "sweep_ends_transactions_of_expired_leases"],
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    names = [mutant.name for mutant in MUTANTS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help="run these alone")
    options = parser.parse_args()
    mutants = [mutant for mutant in MUTANTS if mutant.name in options.only]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:<20}{mutant.what}")
        return 0
    try:
        with copied_checkout() as checkout:
            return report(mutants, checkout)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1


def report(mutants: Sequence[Mutant], checkout: Path) -> int:
    """Run the tests of all mutants on the code as it is, then those of each; print how that went."""
    if broken := not_passed(sorted({test for mutant in mutants for test in mutant.tests}), checkout):
        raise MutantError(f"These tests fail on the code as it is: {', '.join(sorted(broken))}.")
    survivors = 0
    for mutant in mutants:
        file = checkout / mutant.file
        text, began = file.read_text(), time.monotonic()
        file.write_text(mutated(mutant, text))
        passed = set(mutant.tests) - not_passed(mutant.tests, checkout)
        file.write_text(text)
        survivors += bool(passed)
        end = f"SURVIVES {', '.join(sorted(passed))}" if passed else "noticed"
        print(f"{mutant.name:<20}{time.monotonic() - began:4.0f} s  {end}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants were noticed.")
    return 1 if survivors else 0


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of the mutant's file with its edits. Raises MutantError where one does not apply."""
    for old, new in mutant.edits.items():
        if (count := text.count(old)) != 1:
            raise MutantError(
                f"The mutant {mutant.name} does not apply: {mutant.file} has this text {count} times instead of once. "
                f"Aim it at the code as it is now, in perf/mutants.py.\n{old}"
            )
        text = text.replace(old, new)
    return text


@contextmanager
def copied_checkout() -> Iterator[Path]:
    """Give a copy of the files that git tracks, or would, which goes with the services that its tests started."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="benchbench-mutants-") as folder:
        checkout = Path(folder) / "checkout"
        for name in names:
            if (ROOT / name).is_file():
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, checkout / name)
        try:
            yield checkout
        finally:
            remove = [sys.executable, "-m", "benchbench.embedded", "remove"]
            subprocess.run(remove, cwd=checkout, env=environment(checkout), check=True)


def environment(checkout: Path) -> dict[str, str]:
    """The environment of the tests: the copy's modules, and services with a data folder that is the copy's."""
    data = str(checkout.parent / "data")
    folders = {"PYTHONPATH": str(checkout), "BENCHBENCH_TEST_DATA_DIR": data, "BENCHBENCH_DATA_DIR": data}
    return os.environ | folders | {"PYTHONDONTWRITEBYTECODE": "1"}  # of a mutant, whose time of change may be equal


def not_passed(tests: Sequence[str], checkout: Path) -> set[str]:
    """Run tests on the copy and return those that fail: all where they take longer than SECONDS. Raises MutantError."""
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-m", "", *tests]
    output = checkout.parent / "output"
    with output.open("w") as out:
        process = subprocess.Popen(
            pytest, cwd=checkout, env=environment(checkout), stdout=out, stderr=out, start_new_session=True
        )
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return set(tests)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if status > 1:  # 1: tests failed
        raise MutantError(f"The tests cannot be run. pytest ended with {status}:\n{output.read_text()}")
    return set(NOT_PASSED.findall(output.read_text()))


if __name__ == "__main__":
    sys.exit(main())
