"""Formats of datasets: a module for each, and `registry`, which reads any of them and lists those with a writer.

Importing and exporting in this room, and higher rooms, import it.
"""
