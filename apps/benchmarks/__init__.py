"""Matrices of search configurations, run and measured: the models, and the use cases of a benchmark's life.

`defining` and `measuring` lie below `running`; `gates`, `external` and `repeating` above it, knowing nothing of each
other; `views` on top. The rooms above import from here; only datasets, mappings and retrieval are imported.
"""
