"""Workers: what one may hold and for how long, and how it is broken off.

Knows leases and batches only by their rows. Imported by the rest of this room.
"""
