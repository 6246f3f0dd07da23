"""Judged queries, independent of any collection: their records, importing, drafts, exporting, pages.

`readers` and `writers` hold one module a format. Imported by mappings and the rooms above.
"""
