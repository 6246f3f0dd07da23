"""The formats of results: a function that writes each, and one line here."""

from functools import partial

from apps.results.exporters import documents, flowbaby, results_json, spec002, strategy, tables, trec
from apps.results.exporters.base import Exporter
from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1

CSV, JSON, MARKDOWN, TEXT = "text/csv", "application/json", "text/markdown", "text/plain"
TEX = "application/x-tex"
_KNOWN = (
    Exporter("json", "JSON, as the API has it", "benchmark", JSON, "json", results_json.write),
    Exporter("csv", "CSV, one row a run", "benchmark", CSV, "csv", tables.write_runs),
    Exporter("csv-queries", "CSV, one row a run and query", "benchmark", CSV, "queries.csv", tables.write_queries),
    Exporter("markdown", "Markdown, for a pull request", "benchmark", MARKDOWN, "md", documents.write_markdown),
    Exporter("latex", "LaTeX table, significance marked", "benchmark", TEX, "tex", documents.write_latex),
    Exporter("html", "HTML, one file that needs no network", "benchmark", "text/html", "html", documents.write_html),
    Exporter("trec-qrels", "TREC qrels", "benchmark", TEXT, "qrels", trec.write_qrels),
    Exporter(
        "strategy",
        "Retrieval-strategy benchmark, several files",
        "benchmark",
        "application/zip",
        "zip",
        strategy.write,
        file_name=strategy.file_name,
        files=strategy.files,
    ),
    Exporter("csv-run", "CSV, one row a query", "run", CSV, "csv", tables.write_run),
    Exporter("trec-run", "TREC run", "run", TEXT, "run", trec.write_run, marks_failures=False),
    Exporter("spec-002", "SPEC-002 baseline", "run", JSON, "json", spec002.write, file_name=spec002.file_name),
    Exporter("flowbaby-run", "Flowbaby run.json", "run", JSON, "run.json", flowbaby.write_run, marks_failures=False),
    *(
        Exporter(
            f"flowbaby-{part}-{profile.name.removeprefix('flowbaby-')}",
            f"Flowbaby {file}, profile {profile.name.removeprefix('flowbaby-')}, {profile.mean} mean",
            "run",
            content_type,
            f"{profile.name}.{file}",
            partial(write, profile=profile),
        )
        for profile in (FLOWBABY_1_1, FLOWBABY_1_0)
        for part, file, content_type, write in (
            ("results", "results.json", JSON, flowbaby.write_results),
            ("markdown", "results.md", MARKDOWN, flowbaby.write_markdown),
            ("summary", "summary.json", JSON, flowbaby.write_summary),
        )
    ),
)
EXPORTERS = {exporter.name: exporter for exporter in _KNOWN}
