"""The formats of results: one file each, and one line here."""

from apps.results.exporters import html, latex, markdown, results_json, tables, trec
from apps.results.exporters.base import Exporter

CSV, TEXT = "text/csv", "text/plain"
_KNOWN = (
    Exporter("json", "JSON, as the API has it", "benchmark", "application/json", "json", results_json.write),
    Exporter("csv", "CSV, one row a run", "benchmark", CSV, "csv", tables.write_runs),
    Exporter("csv-queries", "CSV, one row a run and query", "benchmark", CSV, "queries.csv", tables.write_queries),
    Exporter("markdown", "Markdown, for a pull request", "benchmark", "text/markdown", "md", markdown.write),
    Exporter("latex", "LaTeX table, significance marked", "benchmark", "application/x-tex", "tex", latex.write),
    Exporter("html", "HTML, one file that needs no network", "benchmark", "text/html", "html", html.write),
    Exporter("trec-qrels", "TREC qrels", "benchmark", TEXT, "qrels", trec.write_qrels),
    Exporter("csv-run", "CSV, one row a query", "run", CSV, "csv", tables.write_run),
    Exporter("trec-run", "TREC run", "run", TEXT, "run", trec.write_run, marks_failures=False),
)
EXPORTERS = {exporter.name: exporter for exporter in _KNOWN}
