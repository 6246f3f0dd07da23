"""Indexes of collections: their parts, building and search.

`encoders`, `stores` and `strategies` lie below `search`, `rerankers` above it. Imported by mappings and what is above.
"""

from benchbench.process import ProcessState

process = ProcessState()
