"""Packs: a record that is read is as it was added, no matter what became of the file."""

import os
import resource
import signal
import subprocess
import sys
from hashlib import sha256

import pytest

from benchbench.local_files.packs import OVERHEAD, Packs, count_packed_bytes, trim_packs, writing
from benchbench.local_files.placing import OutputError
from tests.files.samples import spoil, ways

MOST_BYTES = 10**6


def key(name):
    return sha256(name.encode()).digest()


RECORDS = {key(str(number)): f"content {number} ".encode() * 40 for number in range(6)}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


def filled(folder, **options):
    packs = Packs(folder)
    for name, content in RECORDS.items():
        packs.add(name, content, max_bytes=options.get("most", MOST_BYTES))
    return packs


def test_records_are_read_by_writer_and_other_readers(folder):
    for packs in (filled(folder), Packs(folder)):
        assert packs.read([*RECORDS, key("unknown")]) == RECORDS
        assert packs.find_keys([*RECORDS, key("unknown")]) == RECORDS.keys()
    assert len(os.listdir(folder)) == 1
    assert count_packed_bytes(folder.parent) == sum(OVERHEAD + len(content) for content in RECORDS.values())


def test_records_added_by_another_instance_are_visible(folder):
    one, second = Packs(folder), Packs(folder)
    for number, (name, content) in enumerate(RECORDS.items()):
        packs, reader = (one, second) if number % 2 else (second, one)
        assert not reader.find_keys([name])
        assert not packs.read([name])  # as anyone who adds has looked
        packs.add(name, content, max_bytes=MOST_BYTES)
        assert reader.find_keys([name]) == {name}
        assert reader.read([name]) == {name: content}
    assert len(os.listdir(folder)) == 1


def test_full_disk_gives_an_error_and_loses_no_records(folder):
    packs, more = filled(folder), b"more " * 1000
    (pack,) = folder.iterdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (pack.stat().st_size + 100, limits[1]))
    try:
        with pytest.raises(OutputError) as raised:
            packs.add(key("more"), more, max_bytes=MOST_BYTES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.message.startswith(f"{pack} cannot be written: File too large. Free ")
    for one in (packs, Packs(folder)):
        assert one.read([*RECORDS, key("more")]) == RECORDS
    packs.add(key("more"), more, max_bytes=MOST_BYTES)
    assert Packs(folder).read([*RECORDS, key("more")]) == RECORDS | {key("more"): more}


WAYS = ways(row=OVERHEAD + len(RECORDS[key("0")]), header=slice(0, OVERHEAD))


@pytest.mark.parametrize("is_fresh", [True, False], ids=["its adder", "another"])
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
def test_damaged_record_is_missing_and_can_be_added_again(folder, way, is_fresh):
    packs = filled(folder)
    (file,) = folder.iterdir()
    spoil(file, way)
    packs = packs if is_fresh else Packs(folder)
    result = packs.read(list(RECORDS))
    assert result.items() <= RECORDS.items()
    for name in RECORDS.keys() - result.keys():
        packs.add(name, RECORDS[name], max_bytes=MOST_BYTES)
    for reader in (packs, Packs(folder)):
        assert reader.read(list(RECORDS)) == RECORDS


def test_records_that_changed_places_are_found_by_their_keys(folder):
    filled(folder)
    (file,) = folder.iterdir()
    spoil(file, WAYS["rows in another order"])
    assert Packs(folder).read(list(RECORDS)) == RECORDS


def test_a_content_under_another_key_is_missing(folder):
    filled(folder)
    (file,) = folder.iterdir()
    size = OVERHEAD + len(RECORDS[key("0")])

    def exchanged(content):
        first, second = content[:size], content[size : 2 * size]
        return first[:OVERHEAD] + second[OVERHEAD:] + second[:OVERHEAD] + first[OVERHEAD:] + content[2 * size :]

    spoil(file, exchanged)
    assert Packs(folder).read(list(RECORDS)).keys() == RECORDS.keys() - {key("0"), key("1")}


def test_packs_that_went_are_forgotten(folder):
    packs = filled(folder, most=1)
    assert len(os.listdir(folder)) == 6
    stored = trim_packs(folder.parent, 3 * len(RECORDS[key("0")]) + 3 * OVERHEAD)
    assert stored == count_packed_bytes(folder.parent) > 0
    assert packs.read(list(RECORDS)).keys() == set(list(RECORDS)[3:])
    assert packs.find_keys(list(RECORDS)) == set(list(RECORDS)[3:])
    trim_packs(folder.parent, 0)
    folder.rmdir()
    assert not packs.read(list(RECORDS))
    packs.add(key("0"), b"again", max_bytes=MOST_BYTES)
    assert Packs(folder).read([key("0")]) == {key("0"): b"again"}


def test_a_pack_that_was_used_lately_stays(folder):
    filled(folder, most=1)
    for file in folder.iterdir():
        os.utime(file, (0, 0))
    Packs(folder).read([key("2")])
    trim_packs(folder.parent, 2 * len(RECORDS[key("0")]))
    assert Packs(folder).find_keys(list(RECORDS)) == {key("2")}


def test_readded_record_survives_rescan_of_its_damaged_pack(folder):
    packs = filled(folder)
    (file,) = folder.iterdir()
    size = OVERHEAD + len(RECORDS[key("0")])
    for number in (0, 1):  # the second is found only once the first has its new place
        spoil(file, lambda content, end=(number + 1) * size: content[: end - 1] + b"?" + content[end:])
        name = key(str(number))
        assert not packs.read([name])
        packs.add(name, RECORDS[name], max_bytes=MOST_BYTES)
    assert packs.read([key("0"), key("1")]) == {name: RECORDS[name] for name in (key("0"), key("1"))}


def test_pack_deleted_during_a_read_is_harmless(folder, monkeypatch):
    packs = filled(folder)
    (file,) = folder.iterdir()
    os.utime(file, (0, 0))  # unused for long: one that is deleted to make room
    fstat = os.fstat

    def trimmed_meanwhile(descriptor):
        trim_packs(folder.parent, 0)
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", trimmed_meanwhile)
    assert packs.read([key("0")]) == {key("0"): RECORDS[key("0")]}
    monkeypatch.undo()
    assert not packs.read([key("0")])


KILLED = """
import sys
from pathlib import Path
from benchbench.local_files.packs import Packs, writing
folder = Path(sys.argv[1])
class Half(bytes): pass
with writing(folder.parent):
    packs = Packs(folder)
    packs.read([bytes(32)])
    packs.add(bytes(32), b"whole", max_bytes=10**6)
    (pack,) = folder.iterdir()
    whole = pack.read_bytes()
    with pack.open("ab") as file:
        file.write(whole[:-2])  # what a record has written when its process ends
        file.flush()
        print("half", flush=True)
        sys.stdin.read()
"""


def test_process_killed_while_adding_corrupts_nothing(folder):
    command = [sys.executable, "-c", KILLED, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"half\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    packs = Packs(folder)
    with writing(folder.parent):  # the lock is free
        assert packs.read([bytes(32), key("0")]) == {bytes(32): b"whole"}
        packs.add(key("0"), b"next", max_bytes=MOST_BYTES)
    for reader in (packs, Packs(folder)):
        assert reader.read([bytes(32), key("0")]) == {bytes(32): b"whole", key("0"): b"next"}
