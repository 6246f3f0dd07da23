"""The formats of files as plain Python: what a file states as records, without Django and without a database.

A reader takes a path, unpacks `.gz`, and raises a `BenchbenchError` that names file and line or key for whatever is not
as the format says. The rooms in `apps` make rows of what is read here; `benchbench score` measures it as it is.
"""
