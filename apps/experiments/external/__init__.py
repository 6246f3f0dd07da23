"""External runs: rankings that were made elsewhere.

Imports execution and records; imported by views, the API and the command only.
"""
