"""Indexes of collections: what they are built of, and searching them.

`encoders`, `stores` and `strategies` lie below `search`, `rerankers` above it. Imported by mappings and what is above.
"""
