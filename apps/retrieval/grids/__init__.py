"""Index grids: each strategy by each encoder, and by each language model where the strategy asks one.

Made in one way by the form, the API, the command `build_indexes`, and experiments.
"""
