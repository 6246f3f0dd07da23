"""Values of stored rankings: which measures, on which dataset version, and the hashes of both.

Nothing here searches. Imports the models only; imported by all that shows or checks values.
"""
