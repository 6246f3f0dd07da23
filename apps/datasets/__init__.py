"""Judged queries, independent of any collection: their records, importing, drafts, exporting, pages.

`formats` holds one module per format. Mappings and higher rooms import this room.
"""
