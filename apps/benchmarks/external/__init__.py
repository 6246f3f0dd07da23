"""Rankings that were made elsewhere, as runs beside our own.

Imports `defining`, `measuring` and what stores rankings; imported by views, the API and the command only.
"""
