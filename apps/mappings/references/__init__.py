"""References of judgments: the rules that find their documents, and stubs where there are no documents.

Plain functions. Imported by the resolving of this room.
"""
