"""Judging rounds: people grade (query, document) pairs that runs returned; closing a round makes the next version.

Imports execution and the rooms below it; results (pages) and the API import it.
"""

from benchbench.process import ProcessState

process = ProcessState()
