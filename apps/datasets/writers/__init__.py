"""The formats that datasets are written in: one file each, and one line here. They are those of `readers`."""

from apps.datasets.writers import beir, flowbaby, module_queries, schema1, sectioned, table, trec
from apps.datasets.writers.base import Writer

JSON, ZIP = "application/json", "application/zip"
WRITERS = {
    "benchbench-json": Writer(
        "BenchBench JSON, schema 1.0", "json", JSON, schema1.fit, schema1.files, schema1.cautions
    ),
    "beir": Writer("BEIR directory", "", ZIP, beir.fit, beir.files),
    "trec": Writer("TREC judgments and topics", "", ZIP, trec.fit, trec.files),
    "flowbaby": Writer("Flowbaby directory", "", ZIP, flowbaby.fit, flowbaby.files),
    "sectioned": Writer("Sectioned ground truth", "json", JSON, sectioned.fit, sectioned.files),
    "module-queries": Writer("Module queries (SPEC-001)", "json", JSON, module_queries.fit, module_queries.files),
    "csv": Writer("CSV, one row a judgment", "csv", "text/csv", table.fit, table.csv_files),
    "jsonl": Writer("JSON Lines, one line a judgment", "jsonl", "application/jsonl", table.fit, table.jsonl_files),
}
