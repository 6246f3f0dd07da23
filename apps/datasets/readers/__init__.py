"""The formats of datasets: one file each, and one line here."""

from collections.abc import Callable
from pathlib import Path

from apps.datasets.readers.beir import read_beir
from apps.datasets.readers.schema1 import read_schema1
from apps.datasets.records import DatasetError, DatasetRecord

# A reader takes a path. One that is in SPLIT_FORMATS takes `split` besides.
READERS: dict[str, Callable[..., DatasetRecord]] = {"benchbench-json": read_schema1, "beir": read_beir}
SPLIT_FORMATS = {"beir"}


def read_dataset(path: Path, *, format: str = "", split: str = "") -> DatasetRecord:
    """Return the dataset at `path`. Without a format, a directory is BEIR and a file is BenchBench JSON."""
    if not path.exists():
        raise DatasetError(f"{path} does not exist.")
    format = format or ("beir" if path.is_dir() else "benchbench-json")
    if not split:
        return READERS[format](path)
    if format not in SPLIT_FORMATS:
        raise DatasetError(f"The format {format} has no splits: leave the split out.", field="split")
    return READERS[format](path, split=split)
