"""Whether differences between runs are more than luck, how large they may be, and what they come to.

Plain NumPy over arrays of values. Imported by comparison, gates and pages.
"""
