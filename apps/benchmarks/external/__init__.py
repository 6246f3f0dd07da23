"""External runs: rankings that were made elsewhere, beside our own.

Imports `defining`, `measuring` and what stores rankings; imported by views, the API and the command only.
"""
