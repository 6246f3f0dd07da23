"""Collections of documents: their records, their readers, importing, pages.

Knows only operations and what all rooms share; imported by every room above.
"""
