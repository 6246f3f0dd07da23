"""Formats of datasets: a module for each, and `registry`, which reads any of them and lists those that are written.

Imported by the importing and exporting of this room, and by the rooms above.
"""
