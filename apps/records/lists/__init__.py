"""Lists of queries: the final lists that runs cut, their storing, and the reading of stored lists.

Imports models and plans; imported by measuring and the rooms above.
"""
