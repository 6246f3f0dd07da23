"""Running of a benchmark: its stages batch by batch, storage of their results, and the end.

Imports records; imported by the tasks of this room, by `external` and to explain rankings.
"""
