"""Workers: the jobs that they run, limits on locks and time, and their interruption.

Knows leases and batches only by their rows. Imported by the rest of this room.
"""
