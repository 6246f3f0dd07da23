"""Running a benchmark: the stages of its plan, batch by batch, their results stored, and the end.

Imports `measuring` and the models; imported by the tasks of this room, by `external` and by what explains rankings.
"""
