"""Uploads: in how much memory they are read, and what of them is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.test import Client, RequestFactory

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.datasets.uploading import read_upload
from benchbench.errors import FileFormatError
from benchbench.local_files import placing
from benchbench.local_files.placing import PREFIX, scratch_folder
from benchbench.site.reading import stored
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough


def test_a_large_upload_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """So that a process which is killed in its midst leaves nothing: the kernel frees what no one holds open."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content = os.urandom(settings.FILE_UPLOAD_MAX_MEMORY_SIZE + 1)
    request = RequestFactory().post("/", {"file": SimpleUploadedFile("a.bin", content)})
    (upload,) = request.FILES.values()
    assert isinstance(upload, UploadedFile)
    assert (upload.name, upload.size) == ("a.bin", len(content))
    assert list(tmp_path.iterdir()) == []
    with stored(upload) as path:
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == []


HOLD = """
import sys, time
from benchbench.local_files.placing import scratch_folder
with scratch_folder() as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_next_upload_removes_files_of_a_killed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        left, claimed = (Path(holder.stdout.readline().strip()) for holder in holders if holder.stdout)
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait(HANG_SECONDS)
        assert left.exists()
        for folder in (left, claimed):
            os.utime(folder, (0, 0))
        with scratch_folder() as mine:
            assert sorted(tmp_path.glob(f"{PREFIX}*")) == sorted([claimed, mine])
    finally:
        for holder in holders:
            holder.kill()
            holder.wait(HANG_SECONDS)


def test_a_folder_that_was_made_just_now_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    young = tmp_path / f"{PREFIX}young"
    young.mkdir()
    with scratch_folder():
        assert young.exists()
    monkeypatch.setattr(placing, "YOUNG_SECONDS", -time.time())
    with scratch_folder():
        assert not young.exists()


def test_a_dataset_that_unpacks_to_too_much_is_refused(admin_client: Client, settings: Any) -> None:
    """It would be in memory as a whole."""
    text = b"x" * settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("queries.jsonl", b'{"_id": "q", "text": "' + text + b'"}\n')
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n")
    upload = SimpleUploadedFile("bomb.zip", packed.getvalue())
    with pytest.raises(FileFormatError, match="unpacks to more bytes than are allowed"):
        read_upload([upload])
    upload.seek(0)
    answer = admin_client.post("/admin/datasets/dataset/add/", {"file": upload})
    assert "unpacks to more bytes than are allowed" in answer.content.decode()
    assert not Dataset.objects.exists()


def test_dataset_with_too_many_lines_is_refused_unparsed(admin_client: Client, settings: Any) -> None:
    """A short line takes 25 times its bytes in memory."""
    settings.BENCHMARK_DATASET_MAX_ROWS = 100
    lines = ["query_key,query_text,document_id,grade\n", *(f"q,x,d{n},1\n" for n in range(99))]
    fits = SimpleUploadedFile("rows.csv", "".join(lines).encode())
    assert len(read_upload([fits]).queries[0].judgments) == 99
    upload = SimpleUploadedFile("rows.csv", "".join([*lines, "nothing that can be read\n"]).encode())
    answer = admin_client.post("/admin/datasets/dataset/add/", {"file": upload})
    assert "more than 100 lines (BENCHMARK_DATASET_MAX_ROWS)" in answer.content.decode()
    assert not Dataset.objects.exists()


MEASURE_ROWS = """
import resource, sys
from pathlib import Path
import django
django.setup()
from django.conf import settings
from apps.datasets.uploading import read_upload
from django.core.files.uploadedfile import UploadedFile
path = Path(sys.argv[1])
most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = most()
with path.open("rb") as file:
    record = read_upload([UploadedFile(file, path.name, size=path.stat().st_size)])
print(sum(len(query.judgments) for query in record.queries), most() - before)
"""


@pytest.mark.long
def test_the_most_lines_take_less_than_400_bytes_each(tmp_path: Path, settings: Any) -> None:
    """As settings.py says; ids as short as they can be are the worst."""
    rows = settings.BENCHMARK_DATASET_MAX_ROWS - 1
    path = tmp_path / "rows.csv"
    lines = (f"q{n % 100},x,d{n // 100},1\n" for n in range(rows))
    path.write_text("query_key,query_text,document_id,grade\n" + "".join(lines))
    unhurried = os.environ | {"BENCHBENCH_READING_SECONDS": "600"}
    finished = subprocess.run(
        [sys.executable, "-c", MEASURE_ROWS, str(path)], capture_output=True, text=True, check=True, env=unhurried
    )
    count, grown = map(int, finished.stdout.split())
    assert (count, 1024 * grown < 400 * rows) == (rows, True), grown


MEASURE = """
import json, resource, sys, tracemalloc
from pathlib import Path
import django
django.setup()
from django.core.files.uploadedfile import UploadedFile
from apps.collections.uploading import yield_documents
path = Path(sys.argv[1])
tracemalloc.start()
count = sum(len(batch) for batch in yield_documents(path) if isinstance(batch, list))
print(count, tracemalloc.get_traced_memory()[1])
"""


WORDS = "word " * 200


@pytest.mark.parametrize(
    ("name", "begin", "line", "end"),
    [
        ("corpus.jsonl", "", f'{{"_id": "dNR", "text": "{WORDS}"}}\n', ""),
        ("a.csv", "id,name,body\n", f"dNR,a,{WORDS}\n", ""),
        ("a.trec", "", f"<DOC>\n<DOCNO>NR</DOCNO>\n<TEXT>{WORDS}</TEXT>\n</DOC>\n", ""),
        ("a.xml", "<rss>", f"<item><guid>NR</guid><description>{WORDS}</description></item>", "</rss>"),
    ],
)
def test_a_corpus_is_read_line_by_line(
    name: str, begin: str, line: str, end: str, tmp_path: Path, admin_client: Client
) -> None:
    """However large it is: 8 MiB are read in less than 4."""
    path = tmp_path / name
    path.write_text(begin + "".join(line.replace("NR", str(n)) for n in range(8_000)) + end)
    finished = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True, env=os.environ
    )
    count, peak = map(int, finished.stdout.split())
    assert (count, peak < path.stat().st_size / 2) == (8_000, True), peak
    assert not Collection.objects.exists()
