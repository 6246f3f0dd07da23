"""Long work in resumable parts: operations, batches, leases, queues, and the sockets of those who watch.

Knows no other room: jobs are named by dotted path. Imported by every other room.
"""
