"""Benchmarks: matrices of search configurations that are run and measured.

`running` imports `defining` and `measuring`. `gates`, `external` and `repeating` import these, but not each other.
`views` imports all of them. The room imports datasets, mappings and retrieval; the rooms above import it.
"""
