"""Detecting the format of a dataset from its files."""

from pathlib import Path

from apps.datasets.readers.formats import FORMATS
from apps.datasets.records import DatasetError
from benchbench.files.sniffing import Kind, sniff
from benchbench.reading.strict_json import raw_chunks

# What is a part of a dataset, or none, with the way out.
PARTS: dict[Kind, str] = {
    "trec-topics": "holds the topics of TREC without judgments: import the file of judgments and name this one as its "
    "topics, or import the directory of both",
    "trec-run": "is a TREC run, which holds no judgment",
    "flowbaby-run": "is a Flowbaby run, which holds no judgment",
    "flowbaby-topics": "is a part of a Flowbaby dataset: import the directory that holds it, or a zip of that",
    "flowbaby-qrels": "is a part of a Flowbaby dataset: import the directory that holds it, or a zip of that",
    "beir-lines": "is a part of a BEIR dataset: import the directory that holds it, or a zip of that",
    "beir-qrels": "is a part of a BEIR dataset: import the directory that holds it, or a zip of that",
    "sectioned-document": "is a document: import its directory as a collection",
}


def detect(path: Path) -> str:
    """Return the format in which `path` holds a dataset; raise a sentence where it holds a part of one, or none."""
    if path.is_dir():
        return _of_directory(path)
    kind = sniff(path)
    if told := next((name for name, format in FORMATS.items() if kind and format.kind == kind), ""):
        return told
    if kind in PARTS:
        raise DatasetError(f"{path.name} {PARTS[kind]}.", field="format")
    if path.name.removesuffix(".gz").endswith(".json"):
        return "benchbench-json"
    if not any(chunk.strip() for chunk in raw_chunks(path)):
        raise DatasetError(f"{path.name} is empty.")
    raise DatasetError(
        f"{path.name} has no known format: name its format, one of "
        f"{', '.join(sorted(name for name, format in FORMATS.items() if format.kind))}.",
        field="format",
    )


def _of_directory(directory: Path) -> str:
    marks = {name: format.mark for name, format in FORMATS.items() if format.mark}
    for name, mark in marks.items():
        if any((directory / f"{mark}{ending}").is_file() for ending in ("", ".gz")):
            return name
    if any(path.is_file() and sniff(path) == FORMATS["trec"].kind for path in sorted(directory.iterdir())):
        return "trec"
    raise DatasetError(
        f"{directory} holds no dataset: looked for {', '.join(marks.values())}, and a file of TREC judgments.",
        field="format",
    )
