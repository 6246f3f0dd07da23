"""Benchmarks: matrices of search configurations that are run and measured.

`running` imports `defining` and `measuring`. `gates`, `external` and `repeating` import these, but not each other.
`schedules` imports `gates`, and `views` all of them. The room imports datasets, mappings and retrieval; the rooms
above import it.
"""
