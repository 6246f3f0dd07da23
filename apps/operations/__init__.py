"""Long work in resumable parts: operations, batches, leases, queues, and the sockets of those who watch.

Knows no other room: they register their jobs and kinds of operations. Imported by every other room.
"""

from benchbench.process import ProcessState

process = ProcessState()
