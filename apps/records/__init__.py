"""Runs and what they produced: models, lists and values stored and read, evaluating, comparability.

It keeps the label `benchmarks`, which names tables, permissions and addresses. It imports datasets, mappings and
retrieval. `execution` and the rooms above import it.
"""
