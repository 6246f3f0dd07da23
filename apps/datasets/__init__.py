"""Judged queries, independent of any collection: their records, importing, drafts, exporting, pages.

`formats` holds one module a format. Imported by mappings and the rooms above.
"""
