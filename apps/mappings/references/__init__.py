"""How a judgment's reference finds its document: the rules, and stubs where there are no documents.

Plain functions. Imported by the resolving of this room.
"""
