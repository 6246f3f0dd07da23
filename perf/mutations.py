"""The mutants that `mutants.py` makes: what each breaks, where, and which tests notice.

Not in the list, since they cannot matter:

- the checksum of a record's header in a pack: that of its content covers key and content, so a damaged header can only
  make records count as missing, and they are added again;
- a store filled in place after its folder was cleared: the marker is written last, others wait for the lock, and an
  open collection is never cleared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
        "apps/execution/running/execution.py",
        {
            "    with lease.commit({": f"    {STORE_VALUES}\n    with lease.commit({{",
            f"        {STORE_VALUES}\n": "",
        },
        [OF_MEASURING + "attempt_failing_during_commit_leaves_no_values"],
    ),
    Mutant(
        "values-after",
        "Measured values are stored after the commit of their batch.",
        "apps/execution/running/execution.py",
        {
            f"        {STORE_VALUES}\n": "",
            "version.query_count)\n": f"version.query_count)\n    {STORE_VALUES}\n",
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


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of the mutant's file with its edits. Raises MutantError where one does not apply."""
    for old, new in mutant.edits.items():
        if (count := text.count(old)) != 1:
            raise MutantError(
                f"The mutant {mutant.name} does not apply: {mutant.file} has this text {count} times instead of once. "
                f"Aim it at the code as it is now, in perf/mutations.py.\n{old}"
            )
        text = text.replace(old, new)
    return text
