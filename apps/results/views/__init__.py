"""Pages of results.

Each view gets the data of a page from the packages below. Only interfaces import it.
"""
