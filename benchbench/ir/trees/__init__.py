"""Trees of summaries, as of RAPTOR (Sarthi et al., 2024): what is summarised together, layer by layer.

Plain NumPy and scikit-learn over arrays of vectors. Imported by strategies and by the building of indexes.
"""
