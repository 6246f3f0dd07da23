"""Uploads are read by another process, which is ended after a limit of seconds."""

import json
import multiprocessing
import os
import time
import zipfile
from itertools import chain

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.collections.uploading import yield_documents
from apps.datasets.uploading import read_upload
from apps.experiments.external.reports import read_uploaded_run, yield_run
from benchbench.files.runs import read_run_file
from benchbench.markup import html_is_slow
from benchbench.reading.objects import InvalidKeyError
from benchbench.site import reading
from benchbench.site.reading import LostReaderError, SlowFileError, cut_batches, is_small, yield_read
from tests.datasets.samples import SAMPLES

REMEDY = "Cut it."


@pytest.fixture
def outside(monkeypatch):
    """Have every file read by another process."""
    monkeypatch.setattr(reading, "is_small", lambda path: False)


def end_at_once(path):
    """Yield a piece and end the process, as the kernel does if memory runs out."""
    yield "piece"
    os.kill(os.getpid(), 9)


def divide(path):
    """Yield the result of a division by zero."""
    yield 1 / len(path.read_bytes())


def wait_for_ever(path):
    """Yield nothing."""
    while True:
        time.sleep(1)
    yield


def work_for_ever(path):
    """Yield nothing, and be busy with it."""
    while True:
        yield from ()


def name_process(path):
    """Yield the id of the process that reads."""
    yield os.getpid()


def write_corpus(path, documents, words=20):
    with path.open("w") as file:
        for number in range(documents):
            file.write(json.dumps({"_id": f"d{number}", "title": "Pear", "text": "pear " * words}) + "\n")
    return path


def test_only_a_large_file_is_read_by_another_process(tmp_path, settings):
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_bytes(b"x" * reading.SMALL_BYTES)
    large.write_bytes(b"x" * (reading.SMALL_BYTES + 1))
    assert list(yield_read(name_process, small, remedy=REMEDY)) == [os.getpid()]
    assert list(yield_read(name_process, large, remedy=REMEDY)) != [os.getpid()]


@pytest.mark.parametrize(
    ("members", "small"),
    [
        ({"queries.jsonl": b"x"}, True),
        ({"queries.jsonl": b"x" * reading.SMALL_BYTES}, True),
        ({"queries.jsonl": b"x" * reading.SMALL_BYTES, "b": b"y"}, False),
        ({"corpus.jsonl.gz": b"x"}, False),
        ({"page.HTML": b"x"}, not html_is_slow()),
    ],
)
def test_a_zip_is_small_by_what_it_unpacks_to(tmp_path, members, small):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert is_small(path) is small


def test_a_damaged_pack_is_left_to_its_reader(tmp_path):
    for name in ("a.zip", "a.gz"):
        path = tmp_path / name
        path.write_bytes(b"no pack")
        assert is_small(path)


def test_another_process_reads_what_this_one_does(tmp_path, outside):
    corpus = write_corpus(tmp_path / "corpus.jsonl", 3000)
    run = tmp_path / "a.run"
    run.write_text("".join(f"q{n % 50} Q0 d{n} 1 {n / 7} tag\n" for n in range(30_000)))
    keys = {f"q{n}" for n in range(40)}
    inside, remote = (list(f(yield_documents, corpus, uri_prefix="")) for f in (_call, _call_outside))
    assert len(inside) > 1
    assert remote == inside
    read, uploaded = read_run_file(run, keys), read_uploaded_run(run, keys, format="", order_by=None)
    assert (uploaded.name, uploaded.sha256, uploaded.unknown_count) == (read.name, read.sha256, 10)
    assert {key: list(ranked.documents) for key, ranked in uploaded.rankings.items()} == {
        key: list(ranked.documents) for key, ranked in read.rankings.items()
    }
    assert len(list(yield_run(run, keys))) > 2


def _call(read, path, **options):
    return read(path, **options)


def _call_outside(read, path, **options):
    return yield_read(read, path, remedy=REMEDY, **options)


def test_errors_of_the_reader_arrive_with_their_field(tmp_path, outside):
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "d1", "text": 3}')
    errors = []
    for call in (_call, _call_outside):
        with pytest.raises(InvalidKeyError) as raised:
            list(call(yield_documents, path, uri_prefix=""))
        errors.append((raised.value.message, raised.value.field))
    assert (
        errors[1]
        == errors[0]
        == ("corpus.jsonl, line 1, text must be a string, not a number.", "corpus.jsonl, line 1, text")
    )


def test_every_dataset_arrives_as_it_was_read(tmp_path, outside):
    for name, sample in SAMPLES.items():
        pieces = list(cut_batches(sample.queries, max_weight=2, weigh=lambda query: len(query.judgments)))
        assert list(chain.from_iterable(pieces)) == list(sample.queries), name
        assert all(len(batch) == 1 or sum(len(query.judgments) for query in batch) <= 2 for batch in pieces)


def test_an_unexpected_error_says_where_it_arose(tmp_path, outside):
    path = tmp_path / "empty"
    path.touch()
    with pytest.raises(ZeroDivisionError) as raised:
        list(yield_read(divide, path, remedy=REMEDY))
    assert "in divide" in raised.value.__notes__[0]


@pytest.mark.parametrize("read", [wait_for_ever, work_for_ever])
def test_a_reader_that_is_too_slow_is_ended(tmp_path, outside, settings, read):
    settings.BENCHBENCH_READING_SECONDS = 1
    path = write_corpus(tmp_path / "corpus.jsonl", 1)
    with pytest.raises(SlowFileError) as raised:
        list(yield_read(read, path, remedy=REMEDY))
    limit = "1 s to read, the limit of an upload (BENCHBENCH_READING_SECONDS)"
    assert raised.value.message == f"corpus.jsonl takes longer than {limit}. Cut it."
    assert multiprocessing.active_children() == []


def test_a_reader_that_is_killed_is_a_sentence(tmp_path, outside):
    pieces = yield_read(end_at_once, write_corpus(tmp_path / "corpus.jsonl", 1), remedy=REMEDY)
    assert next(pieces) == "piece"
    with pytest.raises(LostReaderError, match="has ended early; the machine may be short of memory"):
        next(pieces)


def test_a_reader_ends_with_the_one_who_waits(tmp_path, outside):
    path = write_corpus(tmp_path / "corpus.jsonl", 50_000)
    batches = yield_read(yield_documents, path, remedy=REMEDY, uri_prefix="")
    next(batches)
    assert len(multiprocessing.active_children()) == 1
    batches.close()
    assert multiprocessing.active_children() == []


def make_log(lines):
    """Return an uploaded log of queries that takes its reader seconds."""
    return SimpleUploadedFile("log.csv", b"text,count\n" + b"".join(b"pear %d,3\n" % n for n in range(lines)))


def test_this_process_does_not_work_while_another_reads(settings):
    settings.BENCHBENCH_READING_SECONDS = 2
    with pytest.raises(SlowFileError):  # starts the process from which readers are forked
        read_upload([make_log(450_000)], format="query-log")
    log, begun = make_log(450_000), time.process_time()
    with pytest.raises(SlowFileError):
        read_upload([log], format="query-log")
    assert time.process_time() - begun < 1


@pytest.mark.django_db
def test_page_and_api_refuse_a_slow_file_with_remedy(client_of_ada, settings):
    settings.BENCHBENCH_READING_SECONDS = 1
    message = "log.csv takes longer than 1 s to read"
    response = client_of_ada.post(reverse("admin:datasets_dataset_add"), {"file": make_log(450_000)})
    assert message in " ".join(response.context["form"].errors["file"])
    response = client_of_ada.post("/api/v2/benchmark-datasets", {"file": make_log(450_000), "name": "log"})
    assert response.status_code == 413, response.content
    assert response.json()["code"] == "slow_file"
    assert message in response.json()["detail"]
    assert "Leave queries out, or import it with manage.py import_dataset." in response.json()["detail"]
