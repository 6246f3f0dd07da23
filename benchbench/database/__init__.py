"""The database as a whole: whether its tables are there, rows in binary, backups.

Knows Django and no room; imported by rooms, their commands and the command line.
"""
