"""External runs: rankings that were made elsewhere.

Imports `defining`, `measuring` and `running.rankings`; imported by views, the API and the command only.
"""
