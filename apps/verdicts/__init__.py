"""Runs compared, and what follows: values, verdicts in sentences, gates, schedules and their notices.

It imports execution and the rooms below, and owns no tables.
"""

from benchbench.process import ProcessState

process = ProcessState()
