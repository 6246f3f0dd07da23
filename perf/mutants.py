"""Mutants: the code that the fault suite protects, broken in one place each, and the tests that must fail on each.

Works on a copy of the checkout in a temporary folder. Runs the tests on the code as it is, where all must pass, then
those of each mutant, and prints a line for each. Exits with 1 where a mutant survives. Run it after a change of that
code or of its tests; `tests/test_perf.py` checks that every mutant still applies.

python perf/mutants.py [--list] [--only NAME ...]
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mutations import MUTANTS, Mutant, MutantError, mutated

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600  # for one run of pytest; a mutant that hangs is noticed too
NOT_PASSED = re.compile(r"^(?:FAILED|ERROR) ([^\[\s]+)", re.MULTILINE)


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
