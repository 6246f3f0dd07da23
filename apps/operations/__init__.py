"""Long work in resumable parts: operations, batches, leases, queues, and what watchers see of it.

Knows no other room: jobs are named by dotted path. Imported by every other room.
"""
