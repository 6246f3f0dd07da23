"""What is written in a format and read again is what the format holds of it."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from apps.datasets.exporting import export_record, record_of
from apps.datasets.formats.registry import FORMATS, WRITERS, read_dataset
from apps.datasets.formats.writing import losses
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, check
from apps.datasets.versions import content_hash
from benchbench.errors import BenchbenchError
from tests.damages import EXAMPLES, drawn
from tests.datasets.drawn import records
from tests.datasets.samples import SAMPLES


def again(record: DatasetRecord, format: str, folder: Path, *, split: str = "") -> DatasetRecord:
    """Write a record in a format, and read it."""
    export = export_record(record, format, name=record.name)
    path = export.place(folder / "made")
    return read_dataset(path, format=format, split=split)


def same(one: DatasetRecord, other: DatasetRecord, *, label: str = "A") -> bool:
    """Whether two records are the same but for their names, and what readers say of them."""
    return (
        content_hash(one.queries) == content_hash(other.queries)
        and [query.key for query in one.queries] == [query.key for query in other.queries]
        and losses(one, other, label=label) == losses(other, one, label=label) == ()
    )


def test_every_format_that_is_written_is_read() -> None:
    assert set(WRITERS) == set(SAMPLES) <= set(FORMATS)


@pytest.mark.parametrize("format", WRITERS)
def test_a_format_gives_back_all_that_it_holds(format: str, tmp_path: Path) -> None:
    record = SAMPLES[format]
    assert export_record(record, format, name="x").warnings == ()
    split = record.metadata["split"] if format == "beir" else ""
    read = again(record, format, tmp_path, split=split)
    assert same(read, record)
    assert read.source_format == format
    if format in ("benchbench-json", "flowbaby"):
        assert read.name == record.name


@pytest.mark.django_db
@pytest.mark.parametrize("format", WRITERS)
def test_import_export_import_gives_the_same_content(format: str, tmp_path: Path) -> None:
    first = import_dataset(SAMPLES[format], name="first").version
    stored = record_of(first)
    assert same(stored, SAMPLES[format])
    split = SAMPLES[format].metadata["split"] if format == "beir" else ""
    export = export_record(stored, format, name="first")
    for ending in ("", ".gz") if export.writer.extension else ("", ".zip"):
        path = export.place(tmp_path / f"file.{export.writer.extension or 'd'}{ending}")
        second = import_dataset(read_dataset(path, format=format, split=split), name=path.name)
        assert second.version.content_hash == first.content_hash
        assert second.report.outcome == "created"


@pytest.mark.parametrize("format", WRITERS)
@drawn(max(EXAMPLES // 60, 12), phases=[Phase.generate])
@given(data=st.data())
@pytest.mark.fuzz
@pytest.mark.thorough
def test_whatever_a_dataset_holds_is_given_back_told_or_refused(
    format: str, data: st.DataObject, tmp_path: Path
) -> None:
    record = data.draw(records(format))
    check(record)
    with TemporaryDirectory(dir=tmp_path) as name:
        folder = Path(name)
        try:
            export = export_record(record, format, name="x")
            path = export.place(folder / "made")
        except BenchbenchError as error:
            assert (error.message[-1], list(folder.iterdir())) == (".", [])  # noqa: PT017 -- whether it raises is drawn
            return
        for split in {query.split for query in export.held.queries} if format == "beir" else {""}:
            part = [query for query in export.held.queries if query.split == split]
            held = replace(export.held, queries=part, metadata={"split": split}) if split else export.held
            assert same(read_dataset(path, format=format, split=split), held)
