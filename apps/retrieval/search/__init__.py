"""Search of an index: exact, approximate or lexical, with filters.

Imports encoders, stores and strategies; the room of execution imports `open_indexes`.
"""
