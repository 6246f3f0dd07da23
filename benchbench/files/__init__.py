"""File formats as plain Python: readers and writers of records, without Django and without a database.

A reader takes a path and unpacks `.gz`. It raises a `BenchbenchError` with file and line or key for content that
breaks the format. The rooms in `apps` store these records as rows; `benchbench score` measures them directly.
"""
