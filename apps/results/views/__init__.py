"""Pages of results.

Each view asks the packages below for what a page shows. Only interfaces import it.
"""
