"""The database as a whole: state of its tables, rows in binary, failures, backups.

Depends on Django and on no room. Rooms, their commands and the command line import it.
"""
