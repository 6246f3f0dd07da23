"""The formats that datasets are written in: one file each, and one line here. `readers` reads each of them again."""

from apps.datasets.writers import beir, flowbaby, schema1, trec
from apps.datasets.writers.base import Writer

JSON, ZIP = "application/json", "application/zip"
WRITERS = {
    "benchbench-json": Writer(
        "BenchBench JSON, schema 1.0", "json", JSON, schema1.fit, schema1.files, schema1.cautions
    ),
    "beir": Writer("BEIR directory", "", ZIP, beir.fit, beir.files),
    "trec": Writer("TREC judgments and topics", "", ZIP, trec.fit, trec.files),
    "flowbaby": Writer("Flowbaby directory", "", ZIP, flowbaby.fit, flowbaby.files),
}
