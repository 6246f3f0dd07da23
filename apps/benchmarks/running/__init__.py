"""Doing a benchmark: the stages of its plan, batch by batch, what they found stored, and the end of it.

Imports `measuring` and the models; imported by the tasks of this room, by `external` and by what explains rankings.
"""
