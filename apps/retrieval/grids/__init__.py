"""Index grids: each strategy by each encoder, and by each language model where the strategy asks one.

Made in one way by the form, the API and the command `build_indexes`. Experiments
make theirs by `retrieval.reusing` so far.
"""
